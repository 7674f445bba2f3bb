"""The services make exactly the transitions of the tables: each one, and no other.

Each scenario is a short life of one turn; together they take every way that there is.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from hitl_approvals import Reject, TurnFailed, services
from hitl_approvals.exceptions import ToolNotStarted
from hitl_approvals.models import AgentTurn, PendingInterrupt, db_now_plus
from tests.properties.watching import TABLES, watched
from tests.support import agents
from tests.support.agents import CardDeclined, call
from tests.support.turns import (
    begin,
    begin_owed,
    decide,
    decide_and_resume,
    go_silent,
    make_due,
    only,
    pass_deadlines,
    pass_execute_by,
    resume,
)
from tests.support.world import Crash, acts_then, acts_then_raises, raises

MAIL = call("mail", "m", to="a")
NOTE = call("note", "n", text="x")
BOOK = call("book", "b", name="x")
TRUSTED: dict[str, Any] = {"by": None, "via": "test"}


def dies_in_the_call(world, *replies, tool="mail"):
    """Return a turn whose worker died in its one call."""
    world.plan(tool, acts_then_raises(Crash()))
    turn = begin(*replies) if tool == "mail" else begin_owed(*replies)
    with pytest.raises(Crash):
        decide_and_resume(turn)
    return turn


def doubted(world, replies=(MAIL,)):
    world.plan("mail", acts_then_raises(TimeoutError()))
    turn = begin(list(replies))
    decide_and_resume(turn)
    return turn


def runs_through(world, make_agent):
    decide_and_resume(begin([MAIL, BOOK]))
    begin_owed([NOTE])


def is_refused_and_cancelled(world, make_agent):
    decide_and_resume(begin([MAIL]), Reject("no"))
    services.cancel(begin([MAIL]).pk, **TRUSTED)
    services.cancel(begin_owed([MAIL]).pk, **TRUSTED)


def is_cancelled_once_it_is_decided(world, make_agent):
    turn = begin([MAIL])
    decide(only(turn))
    services.cancel(turn.pk, **TRUSTED)


def is_cancelled_while_it_runs(world, make_agent):
    turn = begin([MAIL])
    world.plan("mail", acts_then(lambda: services.cancel(turn.pk, **TRUSTED)))
    decide_and_resume(turn)


def lapses(world, make_agent):
    turn = begin([MAIL])
    decide(only(turn))
    pass_execute_by(only(turn))
    services.sweep()


def fails_cleanly(world, make_agent):
    world.plan("pay", raises(CardDeclined("no")))
    world.plan("book", raises(CardDeclined("no")))
    decide_and_resume(begin([call("pay", "p", order="1", amount=2), BOOK]))


def never_starts_at_first(world, make_agent):
    world.plan("mail", raises(ToolNotStarted("closed")))
    turn = begin([MAIL])
    decide_and_resume(turn)
    resume(turn)


def is_in_doubt_and_happened(world, make_agent):
    services.settle(only(doubted(world)).pk, "happened", **TRUSTED)


def is_in_doubt_and_runs_again(world, make_agent):
    turn = doubted(world)
    pass_deadlines(turn)
    services.settle(only(turn).pk, "run_again", **TRUSTED)


def is_in_doubt_and_given_up(world, make_agent):
    services.settle(only(doubted(world)).pk, "give_up", **TRUSTED)


def is_in_doubt_without_approval(world, make_agent):
    world.plan("note", acts_then_raises(TimeoutError()))
    begin([NOTE])


def is_claimed_by_nobody(world, make_agent):
    turn = begin_owed([MAIL])
    long_ago = db_now_plus(timedelta(days=-30))
    AgentTurn.objects.filter(pk=turn.pk).update(next_run_at=long_ago, hints=99)
    services.sweep()
    services.retry(turn.pk, **TRUSTED)


def needs_attention_over_a_doubt(world, make_agent):
    turn = dies_in_the_call(world, [MAIL])
    AgentTurn.objects.filter(pk=turn.pk).update(max_attempts=1)
    go_silent(turn)
    pass_deadlines(turn)
    services.sweep()
    services.retry(turn.pk, **TRUSTED)


def needs_attention_and_is_cancelled(world, make_agent):
    turn = dies_in_the_call(world, [MAIL])
    AgentTurn.objects.filter(pk=turn.pk).update(max_attempts=1)
    go_silent(turn)
    services.cancel(turn.pk, **TRUSTED)


def fails_and_is_retried(world, make_agent):
    def agent(turn, script):
        if turn.execute_options == "fail":
            raise TurnFailed("over")
        return agents.scripted(turn, script)

    name = make_agent(agent)
    turn = begin([MAIL], agent=name, execute_options="fail")
    services.retry(turn.pk, **TRUSTED)
    over = begin([MAIL], agent=name)
    world.plan("mail", acts_then_raises(Crash()))
    decide(only(over))
    with pytest.raises(Crash):
        resume(over)
    go_silent(over)
    AgentTurn.objects.filter(pk=over.pk).update(execute_options="fail")
    make_due(over)
    resume(over)
    pass_deadlines(over)
    services.sweep()
    services.retry(over.pk, **TRUSTED)


def is_requested(world, make_agent):
    decide_and_resume(agents.mail.request(to="a"))


def is_forked(world, make_agent):
    world.plan("mail", acts_then_raises(TimeoutError()))
    turn = begin([MAIL], [BOOK], [call("mail", "m2", to="b")])
    decide_and_resume(turn)
    services.settle(only(turn).pk, "give_up", **TRUSTED)
    resume(turn)
    decide_and_resume(turn)
    services.fork(turn.pk)


SCENARIOS: list[Callable[..., None]] = [
    runs_through,
    is_refused_and_cancelled,
    is_cancelled_once_it_is_decided,
    is_cancelled_while_it_runs,
    lapses,
    fails_cleanly,
    never_starts_at_first,
    is_in_doubt_and_happened,
    is_in_doubt_and_runs_again,
    is_in_doubt_and_given_up,
    is_in_doubt_without_approval,
    is_claimed_by_nobody,
    needs_attention_over_a_doubt,
    needs_attention_and_is_cancelled,
    fails_and_is_retried,
    is_requested,
    is_forked,
]


@pytest.mark.django_db
def test_the_services_make_exactly_the_transitions_of_the_tables(world, make_agent):
    with watched() as watch:
        for scenario in SCENARIOS:
            scenario(world, make_agent)

    allowed = {
        (name, before, after)
        for name, table in TABLES.items()
        for before, ends in table.items()
        for after in ends
    }
    assert watch.taken == allowed


@pytest.mark.django_db
@pytest.mark.breaks_invariants
def test_a_write_that_the_tables_do_not_know_is_seen():
    turn = begin([MAIL])
    row = PendingInterrupt.objects.filter(turn=turn)

    with watched() as watch:
        row.update(status="resolved", resolved_at=db_now_plus(timedelta()))

    assert watch.unknown == [("interrupt", "pending", "resolved")]

"""An approval that is not used in time goes back to a person; a started call never."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hitl_approvals import Approve, Edit, Reject, Respond, services
from hitl_approvals.gate import batch
from hitl_approvals.models import DbNow, PendingInterrupt
from tests.support.agents import call
from tests.support.turns import (
    begin,
    decide,
    decide_and_resume,
    events,
    full_events,
    go_silent,
    make_due,
    only,
    pass_execute_by,
    recover,
    resume,
    rows,
    step_statuses,
    steps,
    waiting,
)
from tests.support.world import Crash, acts_then_raises, raises

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
PAY = call("pay", "p", order="A", amount="1.00")


def by_the_gate(turn):
    assert resume(turn) == "suspended"


def by_the_sweeper(turn):
    assert services.sweep().lapsed == 1
    turn.refresh_from_db()
    assert turn.status == "suspended"


WAYS = pytest.mark.parametrize("lapse", [by_the_gate, by_the_sweeper])


@WAYS
def test_a_lapsed_approval_runs_nothing_until_it_is_given_again(world, lapse, reviewer):
    turn = begin([MAIL])
    services.decide(only(turn).pk, Edit({"to": "b"}), by=reviewer, via="admin")
    pass_execute_by(only(turn))

    lapse(turn)

    row = only(turn)
    assert world.effects == []
    assert (row.status, row.decision, row.decided_at) == ("pending", None, None)
    assert (row.decision_args_text, row.decision_digest, row.reason) == (None, "", "")
    assert (row.decided_by, row.decided_by_label) == (None, "")
    assert (row.generation, row.revision) == (2, 3)
    assert (turn.undecided, steps(turn)) == (1, [])
    assert events(row) == ["raised", "edited", "lapsed"]
    lapsed = full_events(row)[-1]
    assert lapsed.detail == {"decision": "edit", "decided_by": "rita"}
    assert lapsed.execute_by is not None

    assert decide_and_resume(turn) == "completed"
    assert world.effects == [("mail", {"to": "a"})]
    assert events(row) == [*events(row)[:3], "approved", "resolved"]
    assert [(step.generation, step.status) for step in steps(turn)] == [
        (2, "succeeded")
    ]


@WAYS
def test_a_lapsed_call_gets_a_fresh_time_to_decide(world, lapse):
    turn = begin([call("ship", "s", speed="fast")])
    decide(only(turn))
    PendingInterrupt.objects.filter(turn=turn).update(expires_at=None)
    pass_execute_by(only(turn))

    lapse(turn)

    found = PendingInterrupt.objects.annotate(now=DbNow()).get(turn=turn)
    assert 3590 < (found.expires_at - found.now).total_seconds() <= 3600


@WAYS
def test_the_turn_has_fresh_attempts_after_a_lapse(world, lapse):
    turn = begin([MAIL])
    decide(only(turn))
    world.plan("mail", raises(ConnectionRefusedError("closed")))
    resume(turn)
    assert (turn.status, turn.attempts) == ("ready", 1)
    pass_execute_by(only(turn))

    lapse(turn)

    assert turn.attempts == 0
    assert decide_and_resume(turn) == "completed"


def test_at_the_gate_the_siblings_of_a_lapsed_call_run(world):
    turn = begin([MAIL, PAY])
    first, second = rows(turn)
    decide(first)
    decide(second)
    pass_execute_by(first)

    by_the_gate(turn)

    assert world.names() == ["pay"]
    assert [row.status for row in rows(turn)] == ["pending", "resolved"]
    assert decide_and_resume(turn) == "completed"
    assert world.names() == ["pay", "mail"]


def test_by_the_sweeper_the_siblings_of_a_lapsed_call_wait(world):
    turn = begin([MAIL, PAY])
    first, second = rows(turn)
    decide(first)
    decide(second)
    pass_execute_by(first)

    by_the_sweeper(turn)

    assert world.effects == []
    assert [row.status for row in rows(turn)] == ["pending", "decided"]
    assert turn.undecided == 1
    assert decide_and_resume(turn) == "completed"
    assert world.names() == ["mail", "pay"]
    assert events(second) == ["raised", "approved", "resolved"]


def test_two_approvals_of_a_turn_lapse_together(world):
    turn = begin([MAIL, PAY])
    for row in rows(turn):
        decide(row)
        pass_execute_by(row)

    assert services.sweep().lapsed == 2

    turn.refresh_from_db()
    assert (turn.status, turn.undecided) == ("suspended", 2)
    assert len(waiting(turn)) == 2


@pytest.mark.parametrize("decision", [Reject("no"), Respond("x")])
def test_a_refusal_or_an_answer_never_lapses(world, make_agent, decision):
    def ask(turn, given):
        if decision.type == "respond":
            return turn.interrupt("yes?")
        return turn.call_tools([MAIL])

    turn = begin(agent=make_agent(ask))
    decide(only(turn), decision)

    assert only(turn).execute_by is None
    assert services.sweep().lapsed == 0
    assert resume(turn) == "completed"


def test_a_started_call_never_lapses(world):
    world.plan("mail", acts_then_raises(Crash()))
    turn = begin([MAIL])
    with pytest.raises(Crash):
        decide_and_resume(turn)
    pass_execute_by(only(turn))
    go_silent(turn)

    assert services.sweep().lapsed == 0
    assert resume(turn) == "suspended"
    assert only(turn).status == "in_doubt"
    assert world.names() == ["mail"]


def test_a_started_idempotent_call_is_repeated_although_its_time_has_passed(world):
    world.plan("transfer", acts_then_raises(Crash()))
    turn = begin([call("transfer", "t", to="a")])
    with pytest.raises(Crash):
        decide_and_resume(turn)
    pass_execute_by(only(turn))

    assert recover(turn) == "completed"
    assert len(set(world.keys)) == 1
    assert events(only(turn)) == ["raised", "approved", "resolved"]


def test_a_recorded_call_never_lapses(world, make_agent):
    deaths = [ValueError("after the call")]

    def flaky(turn, given):
        told = turn.call_tools([MAIL])
        if deaths:
            raise deaths.pop()
        return told

    turn = begin(agent=make_agent(flaky))
    decide_and_resume(turn)
    pass_execute_by(only(turn))

    assert services.sweep().lapsed == 0
    assert resume(turn) == "completed"
    assert world.names() == ["mail"]


@WAYS
def test_a_call_that_never_left_may_lapse_before_its_next_try(world, lapse):
    world.plan("mail", raises(ConnectionRefusedError("closed")))
    turn = begin([MAIL])
    decide_and_resume(turn)
    assert step_statuses(turn) == ["not_started"]
    pass_execute_by(only(turn))
    make_due(turn)

    lapse(turn)

    assert world.effects == []
    assert decide_and_resume(turn, Approve()) == "completed"
    assert world.names() == ["mail"]
    assert [(step.generation, step.status) for step in steps(turn)] == [
        (1, "not_started"),
        (2, "succeeded"),
    ]


@WAYS
@pytest.mark.parametrize("tool", ["book", "read_secret", "transfer", "order"])
def test_approvals_of_every_mode_lapse(world, tool, lapse):
    argument = {"transfer": "to", "order": "item"}.get(tool, "name")
    turn = begin([call(tool, "x", **{argument: "a"})])
    decide(only(turn))
    pass_execute_by(only(turn))

    lapse(turn)

    assert world.effects == []
    assert events(only(turn)) == ["raised", "approved", "lapsed"]
    assert decide_and_resume(turn) == "completed"
    assert world.names() == [tool]


def test_only_the_databases_clock_says_that_an_approval_lapsed(
    world, make_agent, monkeypatch
):
    """A worker that believed its own would send the call back for ever and ever."""
    ends = []
    suspend = batch.suspend

    def counted(*args, **kwargs):
        ends.append(True)
        assert len(ends) < 5
        return suspend(*args, **kwargs)

    def agent(turn, given):
        turn._run.clock._now += timedelta(days=2)
        return turn.call_tools([call("read_secret", "r", name="x"), MAIL])

    monkeypatch.setattr(batch, "suspend", counted)
    turn = begin(agent=make_agent(agent))

    assert decide_and_resume(turn) == "completed"
    assert world.names() == ["read_secret", "mail"]


def test_the_sweeper_leaves_turns_alone_that_are_not_ready(world):
    turn = begin([MAIL, PAY])
    first, _second = rows(turn)
    decide(first)
    pass_execute_by(first)

    assert services.sweep().lapsed == 0
    assert [row.status for row in rows(turn)] == ["decided", "pending"]


def test_a_claim_does_not_look_at_the_time(world, monkeypatch):
    """Only the gate does, so that a recorded answer is still told."""
    turn = begin([MAIL], [PAY])
    decide_and_resume(turn)
    pass_execute_by(rows(turn)[0])

    assert decide_and_resume(turn) == "completed"
    assert world.names() == ["mail", "pay"]

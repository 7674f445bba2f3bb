"""Each line about the rows: quiet when all is well, plain when it is not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from hitl_approvals import services
from hitl_approvals.health import Level, Line, work
from hitl_approvals.models import (
    AgentTurn,
    PendingInterrupt,
    SweepMark,
    TurnStep,
    db_now_plus,
)
from tests.support import remote
from tests.support.agents import call
from tests.support.turns import begin, begin_owed, decide, only, resume
from tests.support.world import Crash, World, acts_then_raises

pytestmark = pytest.mark.django_db

FIVE_MINUTES = timedelta(minutes=5)


def ago(**span: int) -> object:
    return db_now_plus(-timedelta(**span))


def told(line: Line) -> tuple[str, str]:
    return line.level.name, line.text


def owed_since(**span: int) -> AgentTurn:
    turn = begin_owed()
    AgentTurn.objects.filter(pk=turn.pk).update(next_run_at=ago(**span))
    return turn


def died_in_a_call(world: World) -> AgentTurn:
    turn = begin([call("mail", to="a")])
    decide(only(turn))
    world.plan("mail", acts_then_raises(Crash()))
    with pytest.raises(Crash):
        resume(turn)
    return turn


def test_an_empty_site_is_well_but_for_its_sweeper() -> None:
    lines = [
        work.owed(FIVE_MINUTES),
        work.unheard(),
        work.blocked(),
        work.leases(),
        work.overdue(),
        work.doubts(),
        work.attention(),
        work.reviewers(),
        work.remote(),
    ]

    assert {line.level for line in lines} == {Level.OK}
    assert not any(line.advice for line in lines)
    assert work.sweeper().level is Level.FAIL


def test_nothing_owed() -> None:
    assert told(work.owed(FIVE_MINUTES)) == ("OK", "No runs are owed.")


def test_runs_that_are_owed_for_a_moment_are_well() -> None:
    owed_since(seconds=20)
    owed_since(seconds=2)

    line = work.owed(FIVE_MINUTES)

    assert told(line)[0] == "OK"
    assert line.text.startswith("2 runs are owed, the oldest for 2")
    assert line.facts["count"] == 2
    assert 20 <= line.facts["oldest_seconds"] < 40


def test_a_run_that_is_owed_for_too_long_is_a_failure() -> None:
    owed_since(minutes=12, seconds=30)

    line = work.owed(FIVE_MINUTES)

    assert line.level is Level.FAIL
    assert line.text.startswith("1 run is owed, the oldest for 12 min 3")
    assert line.text.endswith("that is more than 5 min.")
    assert "Start a worker" in line.advice


def test_runs_that_back_off_or_wait_for_their_thread_are_not_owed() -> None:
    later = begin_owed()
    AgentTurn.objects.filter(pk=later.pk).update(next_run_at=db_now_plus(FIVE_MINUTES))
    begin([call("mail", to="a")], thread_id="same")
    begin([call("mail", to="b")], thread_id="same")

    assert work.owed(FIVE_MINUTES).facts["count"] == 0
    assert told(work.blocked()) == (
        "OK",
        "1 turn waits for another turn of the same thread.",
    )


def test_a_run_that_was_announced_in_vain_is_worth_a_look() -> None:
    turn = owed_since(seconds=1)
    AgentTurn.objects.filter(pk=turn.pk).update(hints=work.UNHEARD_AFTER)

    line = work.unheard()

    assert told(line) == (
        "WARN",
        "1 owed run was announced 3 times or more, and no worker took it.",
    )
    assert "After 15 min" in line.advice


def test_a_sweeper_that_never_came_is_a_failure() -> None:
    line = work.sweeper()

    assert told(line) == ("FAIL", "No sweeper has ever come by.")
    assert "manage.py hitl_sweep" in line.advice


def test_a_sweeper_that_came_by_just_now_is_well() -> None:
    services.sweep()

    line = work.sweeper()

    assert line.level is Level.OK
    assert line.text.startswith("A sweeper came by ")
    assert line.facts["process"]


def test_a_sweeper_that_stays_away_is_a_failure() -> None:
    services.sweep()
    SweepMark.objects.update(swept_at=ago(minutes=3))

    line = work.sweeper()

    assert line.level is Level.FAIL
    assert line.text.startswith("The last sweeper came by 3 min")


def test_a_rare_sweeper_is_given_its_time(settings: Settings) -> None:
    settings.HITL_APPROVALS = {"DISPATCHER": "worker", "SWEEP": 60}
    services.sweep()
    SweepMark.objects.update(swept_at=ago(minutes=3))

    assert work.sweeper().level is Level.OK


@pytest.mark.parametrize(("seconds", "level"), [(5, Level.OK), (120, Level.WARN)])
def test_a_lapsed_lease_is_the_sweepers_first_and_then_worth_a_look(
    world: World, seconds: int, level: Level
) -> None:
    turn = died_in_a_call(world)
    AgentTurn.objects.filter(pk=turn.pk).update(lease_until=ago(seconds=seconds))

    line = work.leases()

    assert line.level is level
    assert line.text.startswith("1 running turn has a lapsed lease, the oldest since")
    assert bool(line.advice) is (level is Level.WARN)


@pytest.mark.parametrize(("seconds", "level"), [(5, Level.OK), (120, Level.WARN)])
def test_a_call_past_its_deadline_is_worth_a_look_after_a_while(
    world: World, seconds: int, level: Level
) -> None:
    died_in_a_call(world)
    TurnStep.objects.filter(status="started").update(hard_deadline=ago(seconds=seconds))

    line = work.overdue()

    assert line.level is level
    assert line.text.startswith("1 call is past the deadline unrecorded, the oldest by")


def test_a_call_in_doubt_is_worth_a_look(world: World) -> None:
    world.plan("note", acts_then_raises(RuntimeError("lost")))
    begin([call("note", text="x")])

    line = work.doubts()

    assert told(line) == ("WARN", "1 call is in doubt: it may have happened or not.")
    assert "settle" in line.advice


def test_a_stopped_turn_is_named_with_its_error() -> None:
    turn = begin_owed()
    AgentTurn.objects.filter(pk=turn.pk).update(
        status="needs_attention", last_error="KeyError: 'x'\nmore"
    )

    line = work.attention()

    assert told(line) == (
        "WARN",
        f"1 turn needs attention; the oldest is {turn.pk}: KeyError: 'x'",
    )
    assert line.facts["oldest"] == [
        {"turn": str(turn.pk), "error": "KeyError: 'x'\nmore"}
    ]
    # Behind the services' back: put it right for the invariants.
    AgentTurn.objects.filter(pk=turn.pk).update(status="ready")


def test_waiting_requests_are_counted_and_no_fault() -> None:
    begin([call("mail", to="a"), call("mail", "2", to="b")])

    line = work.reviewers()

    assert line.level is Level.OK
    assert line.text.startswith("2 requests wait for a person, the oldest since ")


def test_decisions_that_a_remote_agent_did_not_fetch_are_counted_and_no_fault() -> None:
    remote.approved()
    remote.ask()

    line = work.remote()

    assert line.level is Level.OK
    assert line.text.startswith("1 decision waits for its remote agent, the oldest ")


@pytest.mark.parametrize(("seconds", "level"), [(5, Level.OK), (120, Level.WARN)])
def test_a_call_of_which_nothing_was_heard_is_worth_a_look_after_a_while(
    seconds: int, level: Level
) -> None:
    row = remote.fetched()
    PendingInterrupt.objects.filter(pk=row.pk).update(outcome_due=ago(seconds=seconds))

    line = work.remote()

    assert line.level is level
    assert line.facts["unreported"]["count"] == 1
    assert bool(line.advice) is (level is Level.WARN)


def test_a_doubt_of_a_remote_call_counts_like_any_other() -> None:
    remote.in_doubt()

    assert work.doubts().level is Level.WARN
    assert work.remote().level is Level.OK

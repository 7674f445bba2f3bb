"""Calls that may be repeated under their key, and calls that can be asked about."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hitl_approvals import ToolNotStarted
from hitl_approvals.models import AgentTurn, DbNow, TurnStep, db_now_plus
from tests.support.agents import call
from tests.support.turns import (
    begin,
    decide_and_resume,
    events,
    only,
    pass_deadlines,
    recover,
    resume,
    step_statuses,
    steps,
)
from tests.support.world import Crash, acts_then_raises, raises

pytestmark = pytest.mark.django_db
TRANSFER = call("transfer", "t", to="a")
ORDER = call("order", "o", item="a")


def crashed(world, name, one):
    world.plan(name, acts_then_raises(Crash()))
    turn = begin([one])
    with pytest.raises(Crash):
        decide_and_resume(turn)
    assert step_statuses(turn) == ["started"]
    return turn


def test_an_idempotent_call_is_repeated_with_the_same_key_after_a_crash(world):
    turn = crashed(world, "transfer", TRANSFER)

    assert recover(turn) == "completed"
    assert len(world.keys) == 2
    assert len(set(world.keys)) == 1
    assert len(world.keys[0]) == 64
    (step,) = steps(turn)
    assert (step.status, step.idempotency_key) == ("succeeded", world.keys[0])
    assert events(only(turn)) == ["raised", "approved", "resolved"]


def test_an_idempotent_call_is_repeated_with_the_same_key_after_an_error(world):
    world.plan("transfer", acts_then_raises(TimeoutError("read")))
    turn = begin([TRANSFER])

    assert decide_and_resume(turn) == "ready"
    assert step_statuses(turn) == ["started"]
    assert "TimeoutError: read" in turn.last_error
    assert resume(turn) == "completed"
    assert len(world.keys) == 2
    assert len(set(world.keys)) == 1


def test_two_idempotent_calls_have_two_keys(world):
    turn = begin([TRANSFER, call("transfer", "u", to="a")])

    decide_and_resume(turn)

    assert len(set(world.keys)) == 2


def test_the_same_call_in_another_turn_has_another_key(world):
    decide_and_resume(begin([TRANSFER]))
    decide_and_resume(begin([TRANSFER]))

    assert len(set(world.keys)) == 2


def test_an_idempotent_call_is_a_doubt_once_the_other_side_forgot_the_key(world):
    turn = crashed(world, "transfer", TRANSFER)
    TurnStep.objects.filter(turn=turn).update(
        started_at=db_now_plus(timedelta(seconds=-3601))
    )

    assert recover(turn) == "suspended"
    assert len(world.keys) == 1
    assert only(turn).status == "in_doubt"
    assert step_statuses(turn) == ["unknown"]


def test_the_retention_counts_from_the_first_use_of_the_key(world):
    turn = crashed(world, "transfer", TRANSFER)
    TurnStep.objects.filter(turn=turn).update(
        started_at=db_now_plus(timedelta(seconds=-3000))
    )
    world.plan("transfer", acts_then_raises(TimeoutError("read")))
    assert recover(turn) == "ready"

    found = TurnStep.objects.annotate(now=DbNow()).get(turn=turn, kind="tool")

    assert (found.now - found.started_at).total_seconds() > 2900


def test_an_idempotent_call_that_never_left_counts_anew(world):
    world.plan("transfer", raises(ConnectionRefusedError("closed")))
    turn = begin([TRANSFER])
    decide_and_resume(turn)
    TurnStep.objects.filter(turn=turn).update(
        started_at=db_now_plus(timedelta(seconds=-9999))
    )

    assert resume(turn) == "completed"
    found = TurnStep.objects.annotate(now=DbNow()).get(turn=turn, kind="tool")
    assert (found.now - found.started_at).total_seconds() < 60


def test_a_lookup_is_not_asked_while_the_call_may_be_under_way(world):
    turn = crashed(world, "order", ORDER)

    assert recover(turn) == "ready"
    assert world.looked_up == []
    assert world.names() == ["order"]
    assert step_statuses(turn) == ["started"]
    # Nothing can be known before the deadline, so the turn sleeps until then.
    found = AgentTurn.objects.get(pk=turn.pk)
    assert found.next_run_at >= steps(turn)[0].hard_deadline


def test_a_lookup_that_says_done_records_the_result_and_runs_nothing(world):
    turn = crashed(world, "order", ORDER)
    pass_deadlines(turn)
    world.found = ("done", {"number": 12})

    assert recover(turn) == "completed"
    assert world.looked_up == world.keys
    assert world.names() == ["order"]
    assert turn.output[0]["content"] == '{"number": 12}'
    assert events(only(turn)) == ["raised", "approved", "resolved"]


def test_a_lookup_that_says_absent_runs_the_call_on_the_same_step(world):
    turn = crashed(world, "order", ORDER)
    (before,) = steps(turn)
    pass_deadlines(turn)
    world.found = "absent"

    assert recover(turn) == "completed"
    (after,) = steps(turn)
    assert (after.pk, after.status) == (before.pk, "succeeded")
    assert world.keys == [before.idempotency_key] * 2
    assert len(world.looked_up) == 1
    assert events(only(turn)) == ["raised", "approved", "resolved"]


@pytest.mark.parametrize("found", ["unknown", None, "perhaps", ("unknown", None)])
def test_a_lookup_that_does_not_know_leaves_a_doubt(world, found):
    turn = crashed(world, "order", ORDER)
    pass_deadlines(turn)
    world.found = found

    assert recover(turn) == "suspended"
    assert world.names() == ["order"]
    assert only(turn).status == "in_doubt"
    assert events(only(turn)) == ["raised", "approved", "in_doubt"]


def test_a_lookup_that_fails_is_asked_again_later(world):
    turn = crashed(world, "order", ORDER)
    pass_deadlines(turn)
    world.found = OSError("the shop is away")

    assert recover(turn) == "ready"
    assert "the shop is away" in turn.last_error
    world.found = ("done", "found")
    assert resume(turn) == "completed"
    assert world.names() == ["order"]


def test_siblings_run_while_a_lookup_waits(world):
    world.plan("order", acts_then_raises(Crash()))
    turn = begin([ORDER, call("mail", "m", to="a")])
    with pytest.raises(Crash):
        decide_and_resume(turn)

    assert recover(turn) == "ready"
    assert world.names() == ["order", "mail"]


def test_an_error_of_a_lookup_call_is_looked_up_not_repeated(world):
    world.plan("order", acts_then_raises(TimeoutError("read")))
    world.found = ("done", "found")
    turn = begin([ORDER])

    assert decide_and_resume(turn) == "ready"
    assert step_statuses(turn) == ["started"]
    pass_deadlines(turn)

    assert resume(turn) == "completed"
    assert world.names() == ["order"]
    assert turn.output[0]["content"] == "found"


@pytest.mark.parametrize(
    "refused", [ToolNotStarted("down"), ConnectionRefusedError("down")]
)
def test_a_refused_retry_does_not_forget_that_the_first_attempt_may_have_landed(
    world, refused
):
    world.plan("transfer", acts_then_raises(TimeoutError("read")), raises(refused))
    turn = begin([TRANSFER])

    assert decide_and_resume(turn) == "ready"
    assert resume(turn) == "ready"
    assert step_statuses(turn) == ["started"]
    assert "down" in turn.last_error
    assert resume(turn) == "completed"
    assert len(set(world.keys)) == 1


def test_a_process_that_slept_before_a_repeat_does_not_forget_the_first_attempt(
    world, sleepy
):
    turn = crashed(world, "transfer", TRANSFER)

    with sleepy():
        assert recover(turn) == "ready"

    assert len(world.keys) == 1
    assert step_statuses(turn) == ["started"]
    assert resume(turn) == "completed"
    assert len(set(world.keys)) == 1

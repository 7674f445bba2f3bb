"""How a call ends that has an effect: clean failure, not started, unknown."""

from __future__ import annotations

import pytest

from hitl_approvals import ToolFailed, ToolNotStarted, current_call, services
from hitl_approvals.models import AgentTurn, DbNow, TurnStep
from tests.support.agents import CardDeclined, call
from tests.support.turns import (
    begin,
    decide_and_resume,
    events,
    full_events,
    only,
    recover,
    resume,
    rows,
    step_statuses,
    steps,
    waiting,
)
from tests.support.world import Crash, acts_then, acts_then_raises, raises, returns

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
PAY = call("pay", "p", order="A", amount=1)
NOTE = call("note", "n", text="x")


@pytest.mark.parametrize("error", [ToolFailed("no money"), CardDeclined("no money")])
def test_a_clean_failure_is_told_to_the_model_and_not_tried_again(world, error):
    world.plan("pay", raises(error))
    turn = begin([PAY])

    assert decide_and_resume(turn) == "completed"
    (told,) = turn.output
    assert (told["status"], "no money" in told["content"]) == ("error", True)
    row = only(turn)
    assert (row.status, row.outcome_status) == ("resolved", "failed")
    assert events(row) == ["raised", "approved", "resolved"]
    (step,) = steps(turn)
    assert (step.status, step.generation) == ("failed", 1)
    assert step.error == f"{type(error).__name__}: no money"
    assert step.finished_at is not None


def test_a_clean_failure_is_replayed_in_the_same_words(world, make_agent):
    seen = []
    world.plan("note", raises(ToolFailed("the disk is full")))

    def listener(turn, given):
        seen.append(turn.call_tools([NOTE]))
        return turn.call_tools([MAIL])

    turn = begin(agent=make_agent(listener))
    decide_and_resume(turn)

    assert seen[0] == seen[1]
    assert "the disk is full" in seen[0][0]["content"]
    assert world.names() == ["mail"]


def test_an_error_text_with_odd_characters_is_recorded_all_the_same(world):
    world.plan("mail", raises(ToolFailed("nul \x00 half \ud800 end")))
    turn = begin([MAIL])

    assert decide_and_resume(turn) == "completed"
    assert "nul \x00 half \ud800 end" in turn.output[0]["content"]
    (step,) = steps(turn)
    assert step.status == "failed"
    assert step.error.endswith("end")


@pytest.mark.parametrize(
    "error", [ToolNotStarted("later"), ConnectionRefusedError("closed port")]
)
def test_a_call_that_never_left_is_tried_again_on_the_same_step(world, error):
    world.plan("mail", raises(error), raises(error))
    turn = begin([MAIL])

    assert decide_and_resume(turn) == "ready"
    (step,) = steps(turn)
    assert (step.status, turn.attempts) == ("not_started", 1)
    assert type(error).__name__ in step.error
    assert "`mail` could not be started yet." in turn.last_error
    assert only(turn).status == "decided"
    found = AgentTurn.objects.annotate(now=DbNow()).get(pk=turn.pk)
    assert found.next_run_at > found.now

    assert resume(turn) == "ready"
    assert resume(turn) == "completed"
    (same,) = steps(turn)
    assert (same.pk, same.status, same.error) == (step.pk, "succeeded", "")
    assert same.idempotency_key == step.idempotency_key
    assert world.names() == ["mail"]
    assert events(only(turn)) == ["raised", "approved", "resolved"]
    assert len(world.model_calls) == 2


def test_a_free_call_that_never_left_is_tried_again(world):
    world.plan("note", raises(ToolNotStarted("later")))
    turn = begin([NOTE, call("note", "n2", text="y")])

    assert turn.status == "ready"
    assert [args["text"] for _name, args in world.effects] == ["y"]
    assert resume(turn) == "completed"
    assert [args["text"] for _name, args in world.effects] == ["y", "x"]
    assert step_statuses(turn) == ["succeeded", "succeeded"]


def test_siblings_run_before_a_call_that_never_left_is_tried_again(world):
    world.plan("mail", raises(ToolNotStarted("later")))
    turn = begin([MAIL, PAY])

    decide_and_resume(turn)

    assert world.names() == ["pay"]
    assert resume(turn) == "completed"
    assert world.names() == ["pay", "mail"]
    assert [one["tool_call_id"] for one in turn.output] == ["m", "p"]


def test_a_call_that_never_leaves_ends_with_a_person(world, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 2}
    world.plan("mail", *[raises(ToolNotStarted("later"))] * 2)
    turn = begin([MAIL])
    decide_and_resume(turn)

    assert resume(turn) == "needs_attention"
    assert only(turn).status == "decided"
    assert events(turn) == ["turn_needs_attention"]

    services.retry(turn.pk, by=None, via="test")
    assert resume(turn) == "completed"
    assert world.names() == ["mail"]


@pytest.mark.parametrize(
    "error",
    [TimeoutError("read"), RuntimeError("odd"), ConnectionResetError("gone")],
)
def test_any_other_error_of_an_unsafe_call_is_a_doubt_for_a_person(world, error):
    world.plan("mail", acts_then_raises(error))
    turn = begin([MAIL])

    assert decide_and_resume(turn) == "suspended"
    row = only(turn)
    assert (row.status, row.decision, turn.undecided) == ("in_doubt", "approve", 1)
    assert events(row) == ["raised", "approved", "in_doubt"]
    (step,) = steps(turn)
    assert step.status == "unknown"
    assert step.error == f"{type(error).__name__}: {error}"
    assert world.names() == ["mail"]
    assert resume(turn) == "dropped"
    assert len(world.model_calls) == 1


def test_a_crash_in_an_unsafe_call_is_a_doubt_at_the_first_recovery(world):
    world.plan("mail", acts_then_raises(Crash()))
    turn = begin([MAIL])
    with pytest.raises(Crash):
        decide_and_resume(turn)
    assert step_statuses(turn) == ["started"]

    assert recover(turn) == "suspended"
    assert world.names() == ["mail"]
    row = only(turn)
    assert row.status == "in_doubt"
    doubt = full_events(row)[-1]
    assert doubt.detail["step"] == str(steps(turn)[0].pk)


def test_siblings_of_a_crashed_call_still_run(world):
    world.plan("mail", acts_then_raises(Crash()))
    turn = begin([MAIL, PAY])
    with pytest.raises(Crash):
        decide_and_resume(turn)

    assert recover(turn) == "suspended"
    assert world.names() == ["mail", "pay"]
    assert [row.status for row in rows(turn)] == ["in_doubt", "resolved"]
    assert turn.undecided == 1


def test_a_free_unsafe_call_that_crashed_gets_its_row_in_doubt(world):
    world.plan("note", acts_then_raises(Crash()))
    with pytest.raises(Crash):
        begin([NOTE, MAIL])
    turn = AgentTurn.objects.get()
    assert rows(turn) == []

    assert recover(turn) == "suspended"
    assert world.names() == ["note"]
    noted, mailed = waiting(turn)
    assert (noted.status, noted.tool_name, noted.policy["gated"]) == (
        "in_doubt",
        "note",
        False,
    )
    assert noted.args == {"text": "x"}
    assert events(noted) == ["in_doubt"]
    assert (mailed.status, turn.undecided) == ("pending", 2)
    assert steps(turn)[0].interrupt_id == noted.pk


def test_a_result_that_is_no_json_does_not_undo_an_effect_that_happened(world):
    world.plan("mail", returns(object()))
    turn = begin([MAIL])

    assert decide_and_resume(turn) == "completed"
    assert world.names() == ["mail"]
    assert "could not be stored" in turn.output[0]["content"]
    assert only(turn).outcome_status == "succeeded"


def test_a_result_with_odd_characters_is_stored_and_told(world):
    world.plan("mail", returns("nul \x00 half \ud800"))
    turn = begin([MAIL])
    decide_and_resume(turn)

    assert turn.output[0]["content"] == "nul \x00 half \ud800"


def test_the_step_is_committed_before_the_body_with_a_deadline(world):
    seen = []

    def look():
        seen.append(TurnStep.objects.annotate(now=DbNow()).get(name="mail"))

    world.plan("mail", acts_then(look))
    turn = begin([MAIL])
    decide_and_resume(turn)

    (step,) = seen
    assert (step.status, step.fence) == ("started", turn.fence)
    left = (step.hard_deadline - step.now).total_seconds()
    assert 55 < left <= 66
    assert len(step.idempotency_key) == 64


def test_a_tool_can_read_its_key_and_its_deadline(world, make_agent):
    seen = []

    def look():
        seen.append(current_call())

    world.plan("mail", acts_then(look))
    turn = begin([MAIL])
    decide_and_resume(turn)

    (underway,) = seen
    assert underway.idempotency_key == steps(turn)[0].idempotency_key
    assert underway.interrupt_id == str(only(turn).pk)
    assert underway.deadline is not None
    assert current_call() is None


def test_a_process_that_slept_past_the_timeout_does_not_start_the_call(world, sleepy):
    turn = begin([MAIL])

    with sleepy():
        assert decide_and_resume(turn) == "ready"

    assert world.effects == []
    assert step_statuses(turn) == ["not_started"]
    assert resume(turn) == "completed"
    assert world.names() == ["mail"]

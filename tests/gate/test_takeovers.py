"""A worker that comes back after its turn was taken: it may record, never repeat."""

from __future__ import annotations

import pytest

from hitl_approvals import services
from hitl_approvals.enums import OutcomeStatus, StepStatus
from hitl_approvals.gate import batch
from hitl_approvals.models import AgentTurn, TurnStep
from hitl_approvals.services import effects
from tests.support.agents import call
from tests.support.turns import (
    begin,
    decide_and_resume,
    events,
    full_events,
    go_silent,
    only,
    pass_deadlines,
    recover,
    resume,
    rows,
    settle,
    step_statuses,
    steps,
    waiting,
)
from tests.support.world import Crash, acts_then, acts_then_raises

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
NOTE = call("note", "n", text="x")
TRANSFER = call("transfer", "t", to="a")


def test_a_worker_whose_turn_was_taken_records_its_own_call_and_starts_none(world):
    turn = begin([MAIL, call("pay", "p", order="A", amount=1)])
    world.plan("mail", acts_then(lambda: go_silent(turn)))

    assert decide_and_resume(turn) == "lost"
    assert world.names() == ["mail"]
    assert [row.status for row in rows(turn)] == ["resolved", "decided"]

    assert resume(turn) == "completed"
    assert world.names() == ["mail", "pay"]
    assert waiting(turn) == []


def test_a_call_that_ends_after_it_was_put_in_doubt_is_only_noted(world):
    def be_doubted():
        pass_deadlines(turn)
        assert recover(turn) == "suspended"

    world.plan("mail", acts_then(be_doubted))
    turn = begin([MAIL])

    assert decide_and_resume(turn) == "lost"
    row = only(turn)
    assert row.status == "in_doubt"
    assert events(row) == ["raised", "approved", "in_doubt", "late_result"]
    assert full_events(row)[-1].detail["step_status"] == "succeeded"
    assert world.names() == ["mail"]
    settle(row, "happened", result={"effect": 1})
    assert resume(turn) == "completed"


def test_a_free_call_that_ends_after_it_was_put_in_doubt_is_noted_too(world):
    seen = []

    def be_doubted():
        (step,) = TurnStep.objects.filter(name="note")
        seen.append(recover(step.turn))

    world.plan("note", acts_then(be_doubted))
    turn = begin([NOTE])

    assert seen == ["suspended"]
    assert turn.status == "suspended"
    row = only(turn)
    assert (row.status, step_statuses(turn)) == ("in_doubt", ["unknown"])
    assert events(row) == ["in_doubt", "late_result"]
    assert world.names() == ["note"]


def test_an_old_attempt_does_not_record_what_a_new_one_is_doing(world):
    """Both use one key, so either result is right; but the new fence owns the step."""

    def be_overtaken():
        with pytest.raises(Crash):
            recover(turn)

    world.plan("transfer", acts_then(be_overtaken), acts_then_raises(Crash()))
    turn = begin([TRANSFER])

    assert decide_and_resume(turn) == "lost"
    (step,) = steps(turn)
    assert (step.status, step.result) == ("started", None)
    assert step.fence == turn.fence
    assert events(only(turn)) == ["raised", "approved", "late_result"]

    assert recover(turn) == "completed"
    assert len(world.keys) == 3
    assert len(set(world.keys)) == 1
    assert events(only(turn))[-1] == "resolved"


def test_an_old_attempt_that_fails_late_does_not_undo_the_new_ones_result(world):
    def be_overtaken():
        assert recover(turn) == "completed"
        raise ConnectionRefusedError("closed")

    world.plan("transfer", acts_then(be_overtaken))
    turn = begin([TRANSFER])

    assert decide_and_resume(turn) == "lost"
    assert step_statuses(turn) == ["succeeded"]
    assert turn.status == "completed"
    assert only(turn).outcome_status == "succeeded"


def test_a_call_recorded_while_it_was_being_put_in_doubt_is_told_not_asked_about(
    world, make_agent, monkeypatch
):
    """The end of a batch decides by the rows as they are, and then goes on."""
    runs = []

    def agent(turn, given):
        runs.append(turn._run)
        return turn.call_tools([MAIL, call("judged", "j", amount=1)])

    world.policy = lambda call: False
    world.plan("mail", acts_then_raises(Crash()))
    turn = begin(agent=make_agent(agent))
    with pytest.raises(Crash):
        decide_and_resume(turn)
    suspend = batch.suspend

    def late(*args, **kwargs):
        first = runs[1]
        (step,) = [one for one in first.steps.values() if one.name == "mail"]
        assert effects.record(
            first,
            step,
            status=StepStatus.SUCCEEDED,
            outcome=OutcomeStatus.SUCCEEDED,
            digest_run=step.interrupt.decision_digest,
            result="recorded late",
        )
        return suspend(*args, **kwargs)

    monkeypatch.setattr(batch, "suspend", late)

    assert recover(turn) == "completed"
    assert [one["content"] for one in turn.output] == ["recorded late", '{"effect": 1}']
    assert world.names() == ["judged", "mail"]
    assert events(only(turn)) == ["raised", "approved", "resolved"]
    assert len(world.policy_calls) == 1


def test_a_call_of_another_reply_never_gets_the_approval(world, make_agent):
    """Replies reuse ids; an agent that skips the first must not borrow its approval."""
    replies = [1, 2]

    def reply():
        return {"tool_calls": [call("mail", "call_0", to="a")]}

    def skipping(turn, given):
        first = turn.step("model", reply)
        if replies.pop(0) == 1:
            return turn.call_tools(first["tool_calls"])
        second = turn.step("model", reply)
        return turn.call_tools(second["tool_calls"])

    turn = begin(agent=make_agent(skipping))

    assert decide_and_resume(turn) == "suspended"
    assert world.effects == []
    assert sorted(row.status for row in rows(turn)) == ["decided", "pending"]


def test_a_worker_whose_turn_another_one_runs_now_starts_nothing(world, make_agent):
    workers = []

    def agent(turn, given):
        workers.append(turn.id)
        if len(workers) == 2:
            raise Crash
        if len(workers) == 1:
            running = AgentTurn.objects.get(pk=turn.id)
            with pytest.raises(Crash):
                recover(running)
            running.refresh_from_db()
            assert running.status == "running"
        return turn.call_tools([NOTE])

    turn = begin(agent=make_agent(agent))

    assert world.effects == []
    assert (turn.status, turn.attempts, turn.output) == ("running", 2, None)
    assert recover(turn) == "completed"
    assert world.names() == ["note"]


def test_a_turn_that_was_cancelled_while_its_worker_was_away_stays_cancelled(world):
    world.plan("mail", acts_then_raises(Crash()))
    turn = begin([MAIL])
    with pytest.raises(Crash):
        decide_and_resume(turn)

    services.cancel(turn.pk, by=None, via="test")

    assert services.sweep().revoked == 0
    assert resume(turn) == "dropped"
    assert turn.status == "cancelled"
    assert world.names() == ["mail"]

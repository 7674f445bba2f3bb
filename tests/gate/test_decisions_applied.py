"""What each decision makes of its call, counted where effects happen."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hitl_approvals import Edit, Reject, run_turn, services
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.models import AgentTurn
from tests.support.agents import call
from tests.support.turns import (
    begin,
    decide,
    decide_and_resume,
    events,
    full_events,
    make_due,
    only,
    pass_expires_at,
    resume,
    rows,
    step_statuses,
    steps,
    waiting,
)

pytestmark = pytest.mark.django_db
PAY = call("pay", "c1", order="A-1", amount="12.50")


def test_an_approved_call_runs_once_with_the_models_own_arguments(world):
    turn = begin([PAY])

    outcome = decide_and_resume(turn)

    assert outcome == turn.status == "completed"
    assert world.effects == [
        ("pay", {"order": "A-1", "amount": Decimal("12.50"), "note": ""})
    ]
    row = only(turn)
    assert (row.status, row.decision, row.outcome_status) == (
        "resolved",
        "approve",
        "succeeded",
    )
    assert events(row) == ["raised", "approved", "resolved"]
    assert events(turn) == ["turn_completed"]
    assert step_statuses(turn) == ["succeeded"]
    assert len(world.model_calls) == 2
    assert turn.output == [
        {
            "role": "tool",
            "tool_call_id": "c1",
            "name": "pay",
            "content": '{"effect": 1}',
            "status": "ok",
        }
    ]


def test_the_events_name_the_digests_that_were_proposed_shown_and_run(world):
    turn = begin([PAY])
    decide_and_resume(turn, Edit({"order": "A-1", "amount": "1"}))

    row = only(turn)
    raised, edited, resolved = full_events(row)

    assert raised.digest_proposed == row.args_digest
    assert (edited.digest_shown, edited.digest_run) == (
        row.args_digest,
        row.decision_digest,
    )
    assert resolved.digest_run == row.decision_digest != row.args_digest


def test_an_edited_call_runs_with_the_reviewers_arguments_only(world):
    turn = begin([PAY])

    decide_and_resume(
        turn,
        Edit({"order": "A-1", "amount": "2.00", "note": "half"}, reason="too much"),
    )

    assert world.effects == [
        ("pay", {"order": "A-1", "amount": Decimal("2.00"), "note": "half"})
    ]
    assert events(only(turn)) == ["raised", "edited", "resolved"]


def test_the_model_is_told_what_a_reviewer_changed_and_what_ran(world):
    turn = begin([PAY])

    decide_and_resume(
        turn,
        Edit({"order": "A-1", "amount": "2.00", "note": "half"}, reason="too much"),
    )

    (told,) = turn.output
    assert told["status"] == "ok"
    assert 'amount from "12.50" to "2.00"' in told["content"]
    assert 'note was set to "half"' in told["content"]
    assert "too much" in told["content"]
    assert '{"effect": 1}' in told["content"]


def test_the_models_own_call_is_kept_beside_the_edited_one(world):
    turn = begin([PAY])

    decide_and_resume(turn, Edit({"order": "A-1", "amount": "2.00"}))

    row = only(turn)
    assert row.args_text == '{"amount":"12.50","order":"A-1"}'
    assert row.decision_args_text == '{"amount":"2.00","order":"A-1"}'


def test_an_edit_that_does_not_fit_stores_nothing_and_can_be_mended(world):
    turn = begin([PAY])
    row = only(turn)

    with pytest.raises(PayloadRejected) as refusal:
        decide(row, Edit({"order": "A-1", "amount": "a lot"}))

    assert [one["loc"] for one in refusal.value.errors] == ["amount"]
    assert events(only(turn)) == ["raised"]
    assert only(turn).status == "pending"
    assert decide_and_resume(turn, Edit({"order": "A-1", "amount": 2})) == "completed"
    assert [args["amount"] for _name, args in world.effects] == [Decimal(2)]


def test_a_rejected_call_runs_nothing_and_the_model_goes_on_with_the_reason(world):
    turn = begin([PAY], [call("note", "n", text="so be it")])

    outcome = decide_and_resume(turn, Reject("not this customer"))

    assert outcome == "completed"
    assert world.names() == ["note"]
    rejected, noted = turn.output
    assert (rejected["status"], noted["status"]) == ("rejected", "ok")
    assert "not this customer" in rejected["content"]
    row = only(turn)
    assert (row.status, row.outcome_status) == ("resolved", "refused")
    assert events(row) == ["raised", "rejected", "resolved"]
    assert [step.name for step in steps(turn)] == ["note"]
    assert len(world.model_calls) == 3


def test_an_expired_call_runs_nothing_and_the_model_is_told(world):
    turn = begin([PAY])
    pass_expires_at(only(turn))

    report = services.sweep()
    outcome = resume(turn)

    assert report.expired == 1
    assert outcome == "completed"
    assert world.effects == []
    row = only(turn)
    assert (row.decision, row.status, row.outcome_status) == (
        "expire",
        "resolved",
        "expired",
    )
    assert row.decided_at is not None
    assert events(row) == ["raised", "expired", "resolved"]
    assert turn.output[0]["status"] == "expired"


def test_an_undecided_call_never_runs_however_often_it_is_hinted(world):
    turn = begin([PAY])

    outcomes = [run_turn(turn.pk) for _ in range(3)]
    make_due(turn)
    services.sweep()

    assert outcomes == ["dropped"] * 3
    assert run_turn(turn.pk) == "dropped"
    assert world.effects == []
    assert len(world.model_calls) == 1
    assert [row.status for row in waiting(turn)] == ["pending"]
    assert events(only(turn)) == ["raised"]


def test_a_finished_turn_is_never_run_again(world):
    turn = begin([PAY])
    decide_and_resume(turn)

    outcomes = {run_turn(turn.pk) for _ in range(3)}
    services.sweep()

    assert outcomes == {"dropped"}
    assert len(world.effects) == 1
    assert len(world.model_calls) == 2
    assert events(only(turn)) == ["raised", "approved", "resolved"]


def test_an_approval_is_not_used_by_a_later_turn_of_the_thread(world):
    first = begin([PAY], thread_id="customer-7")
    decide_and_resume(first)

    second = begin([PAY], thread_id="customer-7")
    third = begin([PAY], thread_id="customer-7")

    assert len(world.effects) == 1
    assert second.status == "suspended"
    assert [row.status for row in rows(second)] == ["pending"]
    assert (third.status, third.blocked) == ("ready", True)


def test_the_same_call_asked_again_is_a_new_interrupt_flagged_as_a_repeat(world):
    again = call("pay", "c2", order="A-1", amount="12.50")
    turn = begin([PAY], [again])

    decide_and_resume(turn, Edit({"order": "A-1", "amount": "2.00"}))

    first, second = rows(turn)
    assert (first.status, second.status) == ("resolved", "pending")
    assert second.context["repeat_of"] == str(first.pk)
    assert "repeat_of" not in first.context
    assert len(world.effects) == 1


def test_a_hint_for_a_turn_that_nobody_knows_is_dropped(world):
    turn = begin([PAY])
    unknown = AgentTurn(agent="scripted").pk

    assert run_turn(unknown) == "dropped"
    assert run_turn(str(turn.pk)) == "dropped"

"""An approval fits one exact call, and no other call ever gets it."""

from __future__ import annotations

import pytest

from hitl_approvals import Approve, services
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import registry
from tests.support.agents import call
from tests.support.turns import (
    begin,
    decide,
    decide_and_resume,
    events,
    only,
    resume,
    rows,
    steps,
)

pytestmark = pytest.mark.django_db


class Fickle:
    """An agent that asks for another call each time that it runs."""

    def __init__(self, *replies):
        self.replies = list(replies)

    def __call__(self, turn, given):
        calls = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return turn.call_tools(calls)


def fickle(make_agent, *replies):
    body = Fickle(*replies)

    def ask(turn, given):
        return body(turn, given)

    return make_agent(ask)


@pytest.mark.parametrize(
    "other",
    [
        call("mail", "m", to="somebody else"),
        call("pay", "m", order="A", amount=1),
        {"id": "m", "name": "mail", "args": "{broken"},
    ],
    ids=["other arguments", "other tool", "unreadable arguments"],
)
def test_another_call_under_the_same_id_runs_nothing_and_is_shown(
    world, make_agent, other
):
    name = fickle(make_agent, [call("mail", "m", to="a")], [other])
    turn = begin(agent=name)

    assert decide_and_resume(turn) == "needs_attention"
    assert world.effects == []
    row = only(turn)
    assert (row.status, row.decision) == ("decided", "approve")
    assert events(row) == ["raised", "approved"]
    assert row.args_digest[:19] in turn.last_error
    assert f"`{other['name']}`" in turn.last_error
    assert "`mail`" in turn.last_error
    assert events(turn) == ["turn_needs_attention"]
    assert steps(turn) == []


def test_a_retry_after_divergence_still_runs_nothing_else(world, make_agent):
    name = fickle(make_agent, [call("mail", "m", to="a")], [call("mail", "m", to="b")])
    turn = begin(agent=name)
    decide_and_resume(turn)

    services.retry(turn.pk, by=None, via="test")

    assert resume(turn) == "needs_attention"
    assert world.effects == []


def test_a_retry_runs_the_approved_call_once_the_agent_asks_for_it_again(
    world, make_agent
):
    name = fickle(
        make_agent,
        [call("mail", "m", to="a")],
        [call("mail", "m", to="b")],
        [call("mail", "m", to="a")],
    )
    turn = begin(agent=name)
    decide_and_resume(turn)

    services.retry(turn.pk, by=None, via="test")

    assert resume(turn) == "completed"
    assert world.effects == [("mail", {"to": "a"})]
    assert events(only(turn)) == ["raised", "approved", "resolved"]
    assert events(turn) == ["turn_needs_attention", "turn_retried", "turn_completed"]


def test_a_call_with_a_new_id_is_a_new_interrupt_and_the_old_approval_is_withdrawn(
    world, make_agent
):
    name = fickle(
        make_agent, [call("mail", "m1", to="a")], [call("mail", "m2", to="a")]
    )
    turn = begin(agent=name)
    (old,) = rows(turn)
    decide(old, Approve())

    assert resume(turn) == "suspended"
    assert world.effects == []
    old, new = PendingInterrupt.objects.filter(turn=turn).order_by("requested_at", "pk")
    assert (old.status, new.status) == ("decided", "pending")
    assert decide_and_resume(turn) == "completed"

    assert world.effects == [("mail", {"to": "a"})]
    old.refresh_from_db()
    assert (old.status, old.outcome_status) == ("cancelled", "not_requested_again")
    assert events(old) == ["raised", "approved", "cancelled"]
    assert events(new) == ["raised", "approved", "resolved"]


def test_calls_without_ids_are_told_apart_by_tool_and_order(world, make_agent):
    name = fickle(
        make_agent,
        [call("mail", to="a"), call("mail", to="b")],
        [call("mail", to="b"), call("mail", to="a")],
    )
    turn = begin(agent=name)

    assert decide_and_resume(turn) == "needs_attention"
    assert world.effects == []


def test_a_recorded_free_call_does_not_answer_for_another_one(world, make_agent):
    name = fickle(
        make_agent,
        [call("note", "n", text="x"), call("mail", "m", to="a")],
        [call("note", "n", text="y"), call("mail", "m", to="a")],
    )
    turn = begin(agent=name)

    assert decide_and_resume(turn) == "needs_attention"
    assert world.names() == ["note"]


def test_an_approved_call_whose_tool_is_gone_runs_nothing(world, make_agent):
    turn = begin([call("mail", "m", to="a")])
    definition = registry.agents["scripted"]
    kept = definition.tools.pop("mail")
    try:
        outcome = decide_and_resume(turn)
    finally:
        definition.tools["mail"] = kept

    assert outcome == "needs_attention"
    assert "mail" in turn.last_error
    assert only(turn).status == "decided"
    services.retry(turn.pk, by=None, via="test")
    assert resume(turn) == "completed"
    assert world.names() == ["mail"]


def test_a_call_that_is_not_asked_for_any_more_is_withdrawn_at_the_end(
    world, make_agent
):
    name = fickle(make_agent, [call("mail", "m", to="a")], [])
    turn = begin(agent=name)

    assert decide_and_resume(turn) == "completed"
    row = only(turn)
    assert world.effects == []
    assert (row.status, row.outcome_status) == ("cancelled", "not_requested_again")
    assert events(row) == ["raised", "approved", "cancelled"]


def test_an_approval_of_other_bytes_runs_nothing(world):
    turn = begin([call("mail", "m", to="a")])
    row = only(turn)
    decide(row)
    PendingInterrupt.objects.filter(pk=row.pk).update(args_text='{"to":"b"}')

    assert resume(turn) == "needs_attention"
    assert world.effects == []
    assert only(turn).status == "decided"
    assert "not the approved ones" in turn.last_error


def test_an_edit_whose_bytes_were_changed_runs_nothing(world):
    turn = begin([call("mail", "m", to="a")])
    row = only(turn)
    decide(row, {"type": "edit", "args": {"to": "b"}})
    PendingInterrupt.objects.filter(pk=row.pk).update(decision_args_text='{"to":"c"}')

    assert resume(turn) == "needs_attention"
    assert world.effects == []

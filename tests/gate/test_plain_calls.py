"""Tools called as plain functions: gated inside a turn, refused outside."""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest

from hitl_approvals import ApprovalRejected, Edit, Reject, ToolFailed
from hitl_approvals.exceptions import NotInTurn, PayloadRejected
from hitl_approvals.registry import current_gate
from tests.support.agents import book, mail, note, order, pay, read, ship
from tests.support.turns import (
    begin,
    decide_and_resume,
    events,
    only,
    rows,
    step_statuses,
    steps,
    waiting,
)
from tests.support.world import acts_then, raises

pytestmark = pytest.mark.django_db


def test_a_gated_tool_outside_a_turn_is_refused(world):
    with pytest.raises(NotInTurn, match=r"mail\.unguarded"):
        mail(to="a")

    assert world.effects == []


def test_unguarded_is_the_explicit_way_round(world):
    assert mail.unguarded(to="a") == {"effect": 1}
    assert world.names() == ["mail"]


def test_a_free_tool_outside_a_turn_is_a_plain_function(world):
    assert note(text="x") == {"effect": 1}
    assert note("y") == {"effect": 2}


def test_a_plain_call_inside_a_turn_waits_and_returns_the_tools_value(
    world, make_agent
):
    def plain(turn, given):
        return pay("A", amount=Decimal("1.50"))

    turn = begin(agent=make_agent(plain))
    assert world.effects == []
    row = only(turn)
    assert row.args == {"order": "A", "amount": "1.50"}

    assert decide_and_resume(turn) == "completed"
    assert world.effects == [
        ("pay", {"order": "A", "amount": Decimal("1.50"), "note": ""})
    ]
    assert turn.output == {"effect": 1}
    assert events(only(turn)) == ["raised", "approved", "resolved"]


def test_a_free_plain_call_inside_a_turn_is_recorded_once(world, make_agent):
    def plain(turn, given):
        first = note(text="x")
        return [first, mail(to="a")]

    turn = begin(agent=make_agent(plain))
    decide_and_resume(turn)

    assert turn.output == [{"effect": 1}, {"effect": 2}]
    assert world.names() == ["note", "mail"]
    assert step_statuses(turn) == ["succeeded", "succeeded"]


def test_a_refused_plain_call_raises_with_the_reason(world, make_agent):
    caught = []

    def plain(turn, given):
        try:
            return mail(to="a")
        except ApprovalRejected as refusal:
            caught.append((refusal.tool_name, refusal.reason))
            return "not sent"

    turn = begin(agent=make_agent(plain))
    decide_and_resume(turn, Reject("too late"))

    assert turn.output == "not sent"
    ((name, reason),) = caught
    assert name == "mail"
    assert "too late" in reason
    assert world.effects == []


def test_an_edited_plain_call_returns_what_the_edited_call_returned(world, make_agent):
    world.plan("mail", lambda name, args: f"sent to {args['to']}")

    def plain(turn, given):
        return mail(to="a")

    turn = begin(agent=make_agent(plain))
    decide_and_resume(turn, Edit({"to": "b"}))

    assert turn.output == "sent to b"


def test_equal_plain_calls_are_told_apart_by_their_order(world, make_agent):
    def plain(turn, given):
        return [mail(to="a"), mail(to="a")]

    turn = begin(agent=make_agent(plain))
    decide_and_resume(turn)
    assert [row.status for row in rows(turn)] == ["resolved", "pending"]
    decide_and_resume(turn)

    assert turn.output == [{"effect": 1}, {"effect": 2}]
    assert len(world.effects) == 2


def test_a_tool_that_the_agent_did_not_name_is_gated_all_the_same(world, make_agent):
    def plain(turn, given):
        return mail(to="a")

    turn = begin(agent=make_agent(plain, read))

    assert [row.tool_name for row in waiting(turn)] == ["mail"]
    assert decide_and_resume(turn) == "completed"
    assert world.names() == ["mail"]


def test_arguments_that_do_not_fit_are_the_callers_error(world, make_agent):
    def plain(turn, given):
        with pytest.raises(PayloadRejected):
            pay(order="A", amount="a lot")
        with pytest.raises(TypeError):
            pay("A", 1, "x", "one too many")
        return "caught"

    turn = begin(agent=make_agent(plain))

    assert (turn.status, turn.output) == ("completed", "caught")
    assert world.effects == []


def test_a_typed_value_comes_back_from_the_record(world, make_agent):
    seen = []

    def plain(turn, given):
        seen.append(ship(speed="fast"))
        return

    turn = begin(agent=make_agent(plain))
    decide_and_resume(turn)

    assert seen == [{"effect": 1}]


def test_a_tool_that_calls_another_gated_tool_is_refused(world, make_agent):
    """Inside a body no gate can suspend: the effect before it would repeat."""

    def call_mail():
        mail(to="b")

    world.plan("book", acts_then(call_mail))

    def plain(turn, given):
        return turn.call_tool(book, {"name": "x"})

    turn = begin(agent=make_agent(plain))
    decide_and_resume(turn)

    assert turn.output["status"] == "error"
    assert "mail" not in world.names()
    assert steps(turn)[0].error.startswith("NotInTurn")
    assert only(turn).outcome_status == "failed"


def test_a_clean_failure_of_a_plain_call_raises_with_its_text(world, make_agent):
    world.plan("note", raises(ToolFailed("the disk is full")))

    def plain(turn, given):
        with pytest.raises(ApprovalRejected, match="the disk is full"):
            note(text="x")
        return "caught"

    turn = begin(agent=make_agent(plain))

    assert turn.output == "caught"


def test_the_gate_is_gone_after_the_turn_and_in_other_threads(world, make_agent):
    seen = []

    def plain(turn, given):
        seen.append(current_gate.get() is not None)
        thread = threading.Thread(target=lambda: seen.append(current_gate.get()))
        thread.start()
        thread.join()

    begin(agent=make_agent(plain))

    assert seen == [True, None]
    assert current_gate.get() is None


def test_tools_keep_the_name_and_the_docstring_of_their_function():
    assert order.__name__ == "order"
    assert order.__doc__ == "Order something at a shop that can be asked afterwards."
    assert repr(order) == "<Tool order>"

"""Several calls in one reply: who runs when, and whose decision is whose."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hitl_approvals import Approve, Edit, Reject
from tests.support.agents import call, pay
from tests.support.turns import (
    begin,
    decide,
    decide_and_resume,
    events,
    only,
    resume,
    rows,
    steps,
    waiting,
)
from tests.support.world import acts_then_raises, raises

pytestmark = pytest.mark.django_db


def test_free_calls_run_first_in_order_and_gated_ones_wait_together(world):
    turn = begin(
        [
            call("mail", "m", to="a"),
            call("note", "n1", text="one"),
            call("pay", "p", order="A", amount=1),
            call("note", "n2", text="two"),
        ]
    )

    assert world.effects == [("note", {"text": "one"}), ("note", {"text": "two"})]
    assert (turn.status, turn.undecided) == ("suspended", 2)
    assert [row.tool_name for row in waiting(turn)] == ["mail", "pay"]
    assert len(world.model_calls) == 1


def test_no_gated_call_runs_before_all_are_decided(world):
    turn = begin(
        [
            call("mail", "m", to="a"),
            call("pay", "p", order="A", amount=1),
            call("mail", "k", to="b"),
        ]
    )
    first, second, third = waiting(turn)

    for row in (third, first):
        decide(row)
        assert resume(turn) == "dropped"
        assert world.effects == []
    turn.refresh_from_db()
    assert (turn.status, turn.undecided) == ("suspended", 1)
    decide(second)

    assert resume(turn) == "completed"
    assert world.names() == ["mail", "pay", "mail"]
    assert [args.get("to") for _name, args in world.effects] == ["a", None, "b"]


def test_answers_come_back_in_the_models_order(world):
    turn = begin(
        [
            call("mail", "1", to="a"),
            call("note", "2", text="x"),
            call("nothing", "3"),
            call("pay", "4", order="A", amount=1),
            call("read", "5", name="y"),
        ]
    )
    mail_row, pay_row = waiting(turn)
    decide(mail_row, Reject("no"))
    decide(pay_row)
    resume(turn)

    assert [one["tool_call_id"] for one in turn.output] == ["1", "2", "3", "4", "5"]
    assert [one["status"] for one in turn.output] == [
        "rejected",
        "ok",
        "error",
        "ok",
        "ok",
    ]
    assert all(one["role"] == "tool" for one in turn.output)


@pytest.mark.parametrize("ids", [("x", "y"), ("x", "x"), (None, None), ("", "")])
def test_two_calls_of_one_tool_with_equal_arguments_are_two_rows(world, ids):
    first_id, second_id = ids
    turn = begin(
        [
            call("pay", first_id, order="A", amount="5"),
            call("pay", second_id, order="A", amount="5"),
        ]
    )
    first, second = waiting(turn)

    decide(first, Edit({"order": "A", "amount": "1"}))
    decide(second, Reject("the second one not"))
    resume(turn)

    assert world.effects == [
        ("pay", {"order": "A", "amount": Decimal(1), "note": ""}),
    ]
    assert [one["status"] for one in turn.output] == ["ok", "rejected"]
    assert 'from "5" to "1"' in turn.output[0]["content"]
    assert [row.outcome_status for row in rows(turn)] == ["succeeded", "refused"]
    assert [events(row)[1] for row in rows(turn)] == ["edited", "rejected"]
    assert first.dedupe_key != second.dedupe_key


def test_the_same_id_in_two_replies_is_two_calls(world):
    turn = begin(
        [call("pay", "call_0", order="A", amount=1)],
        [call("pay", "call_0", order="B", amount=2)],
    )
    decide_and_resume(turn)
    assert [row.status for row in rows(turn)] == ["resolved", "pending"]

    decide_and_resume(turn, Reject("not B"))

    assert [args["order"] for _name, args in world.effects] == ["A"]
    assert [one["status"] for one in turn.output] == ["ok", "rejected"]


def test_decisions_reach_their_own_calls_in_any_order_of_deciding(world):
    turn = begin([call("mail", name, to=name) for name in ("a", "b", "c", "d")])
    a, b, c, d = waiting(turn)

    decide(d, Reject("not d"))
    decide(b, Edit({"to": "B"}))
    decide(a)
    decide(c, Reject("not c"))
    resume(turn)

    assert [args["to"] for _name, args in world.effects] == ["a", "B"]
    assert [one["status"] for one in turn.output] == [
        "ok",
        "ok",
        "rejected",
        "rejected",
    ]


def test_siblings_run_although_one_of_them_fails(world):
    world.plan("pay", raises(RuntimeError("timeout")))
    turn = begin(
        [
            call("pay", "p", order="A", amount=1),
            call("mail", "m", to="after"),
        ]
    )

    decide_and_resume(turn)

    assert world.names() == ["mail"]
    assert turn.status == "suspended"
    assert [row.status for row in rows(turn)] == ["in_doubt", "resolved"]
    assert [step.status for step in steps(turn)] == ["unknown", "succeeded"]


def test_a_free_calls_doubt_is_raised_together_with_the_first_pending(world):
    world.plan("note", acts_then_raises(RuntimeError("timeout")))
    turn = begin([call("note", "n", text="x"), call("mail", "m", to="a")])

    assert (turn.status, turn.undecided) == ("suspended", 2)
    assert {row.tool_name: row.status for row in rows(turn)} == {
        "note": "in_doubt",
        "mail": "pending",
    }
    assert world.names() == ["note"]


def test_one_call_of_a_tool_object_goes_through_the_gate(world, make_agent):
    def one(turn, given):
        return turn.call_tool(pay, {"order": "A", "amount": 3}, reason="because")

    turn = begin(agent=make_agent(one))
    row = only(turn)

    assert row.context["agent_reason"] == "because"
    assert decide_and_resume(turn, Approve()) == "completed"
    assert turn.output["status"] == "ok"
    assert world.names() == ["pay"]


def test_the_row_carries_what_the_reviewer_needs(world):
    turn = begin(
        [call("read", "r", name="x")],
        [call("mail", "m", to="a@example.org")],
        thread_id="customer-7",
    )

    row = only(turn)
    assert (row.agent, row.thread_id, row.tool_call_id) == (
        "scripted",
        "customer-7",
        "m",
    )
    assert row.tool_description == "Send a mail."
    assert row.args == {"to": "a@example.org"}
    assert row.context["asked"] == turn.input
    assert row.context["trip"] == 1
    assert row.context["agent_reason"] == "reason 1"
    assert [one["role"] for one in row.context["messages"]] == [
        "assistant",
        "tool",
        "assistant",
    ]
    assert row.policy["check_hint"] == "Look at the outbox."
    assert row.tags == ["outside"]
    assert list(row.allowed_decisions) == ["approve", "edit", "reject"]


def test_context_keeps_the_last_messages_that_fit(world, settings, make_agent):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_CONTEXT_BYTES": 200}

    def long_talk(turn, given):
        messages = [{"role": "user", "content": f"{n} " + "x" * 60} for n in range(9)]
        return turn.call_tools([call("mail", "m", to="a")], messages=messages)

    turn = begin(agent=make_agent(long_talk))

    kept = [one["content"][0] for one in only(turn).context["messages"]]
    assert kept == ["7", "8"]


def test_an_unknown_queue_goes_to_the_default_one_and_says_so(world):
    turn = begin([call("ship", "s", speed="fast")])

    row = only(turn)
    assert row.queue_id == "default"
    assert row.policy["queue_unknown"] == "shipping"
    assert list(row.allowed_decisions) == ["approve", "reject"]
    assert row.expires_at is not None

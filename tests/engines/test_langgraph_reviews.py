"""`HumanInTheLoopMiddleware` over the gate, and middleware that walks around it."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_approvals import Edit, Reject, Respond, results
from hitl_approvals.models import AgentTurn
from hitl_approvals.testing.failpoints import armed
from tests.engines.langgraph_support import (
    MAIL,
    NOTE,
    PAY,
    begin,
    call,
    chain,
    declare,
)
from tests.support import turns
from tests.support.agents import mail, note, pay
from tests.support.world import Crash, world

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]

MODES = pytest.mark.parametrize("mode", ["per_call", "batched"])


@MODES
def test_each_call_under_review_gets_its_own_decision(mode: str) -> None:
    second = call("c9", "pay", order="B2", amount="7")
    replies = [[PAY, second, MAIL, NOTE]]
    tools = {"pay": 1, "mail": 1}
    declare(chain.react(replies, [chain.review(mode, **tools)]))
    turn = begin("refunds")

    assert [row.tool_call_id for row in turns.rows(turn)] == ["c1", "c9", "c2"]
    # Batched, a reply waits as a whole; one by one, what is free runs at once.
    assert world.names() == (["note"] if mode == "per_call" else [])
    approved, edited, refused = turns.rows(turn)
    turns.decide(approved)
    turns.decide(edited, Edit({"order": "B2", "amount": "3", "note": ""}))
    turns.decide(refused, Reject("not now"))
    turns.resume(turn)

    assert turn.status == "completed", turn.last_error
    paid = [str(args["amount"]) for name, args in world.effects if name == "pay"]
    assert paid == ["5", "3"]
    assert sorted(world.names()) == ["note", "pay", "pay"]
    told = dict(world.told)
    assert "effect" in told["c1"]
    assert "A reviewer changed this call before it ran: amount from" in told["c9"]
    assert results.rejected("not now") in told["c2"]
    assert [row.outcome_status for row in turns.rows(turn)] == [
        "succeeded",
        "succeeded",
        "refused",
    ]
    assert world.model_calls == ["reply 0", "reply 1"]


@MODES
def test_what_only_the_middleware_gates_waits_as_well(mode: str) -> None:
    declare(chain.react([[NOTE, PAY]], [chain.review(mode)]))
    turn = begin("refunds")

    free, gated = turns.rows(turn)
    assert (free.tool_name, gated.tool_name) == ("note", "pay")
    assert free.policy["why"].startswith("the agent's own middleware")
    assert world.names() == []
    turns.decide(free, Reject("no"))
    turns.decide(gated)
    turns.resume(turn)

    assert (turn.status, world.names()) == ("completed", ["pay"])


@MODES
def test_only_decisions_that_both_allow_are_offered(mode: str) -> None:
    review = chain.review(mode, ["approve", "respond"], pay=1)
    declare(chain.react([[PAY]], [review]))
    turn = begin("refunds")

    assert turns.only(turn).allowed_decisions == ["approve"]
    turns.decide_and_resume(turn)
    assert (turn.status, world.names()) == ("completed", ["pay"])


@MODES
def test_a_refusal_that_the_middleware_does_not_know_still_refuses(mode: str) -> None:
    declare(chain.react([[PAY]], [chain.review(mode, ["approve"], pay=1)]))
    turn = begin("refunds")
    turns.pass_expires_at(turns.only(turn))
    from hitl_approvals import services

    services.sweep()
    turns.resume(turn)

    assert (turn.status, world.effects) == ("completed", [])
    assert world.told == [("c1", results.expired())]


@MODES
def test_a_person_may_answer_in_the_tools_place(mode: str) -> None:
    review = chain.review(mode, ["respond"], note=1)
    declare(chain.react([[NOTE]], [review]))
    turn = begin("refunds")

    row = turns.only(turn)
    assert (row.kind, row.payload["tool"]) == ("question", "note")
    turns.decide(row, Respond("I wrote it myself"))
    turns.resume(turn)

    assert (turn.status, world.effects) == ("completed", [])
    assert world.told == [("c3", "I wrote it myself")]


@MODES
def test_a_review_of_a_tool_that_is_not_ours_is_a_visible_stop(mode: str) -> None:
    from langchain_core.tools import tool

    ran = []

    @tool
    def wire(to: str) -> str:
        """Wire money."""
        ran.append(to)
        return "wired"

    def factory(tools: list[Any]) -> Any:
        review = chain.review(mode, wire=1)
        return chain.react([[call("c1", "wire", to="x")]], [review])([*tools, wire])

    declare(factory)
    turn = begin("refunds")

    assert (turn.status, ran) == ("needs_attention", [])
    assert "`wire`, which is not among the agent's tools" in turn.last_error


@MODES
@pytest.mark.parametrize("outer", [True, False], ids=["outer", "inner"])
def test_a_jump_to_the_tools_does_not_get_round_the_gate(
    mode: str, outer: bool
) -> None:
    review = chain.review(mode, pay=1, mail=1)
    middleware = [chain.Jump(), review] if outer else [review, chain.Jump()]
    declare(chain.react([[PAY, MAIL]], middleware))
    turn = begin("refunds")

    decided = 0
    while turn.status == "suspended":
        assert world.effects == []
        for row in turns.waiting(turn):
            decided += 1
            turns.decide(row, Reject("no"))
        turns.resume(turn)

    assert (turn.status, decided) == ("completed", 2)
    assert world.effects == []
    assert [row.outcome_status for row in turns.rows(turn)] == ["refused", "refused"]
    assert turns.steps(turn) == []


@MODES
@pytest.mark.parametrize("outer", [True, False], ids=["outer", "inner"])
def test_what_a_jump_reaches_runs_once_when_it_is_approved(
    mode: str, outer: bool
) -> None:
    review = chain.review(mode, pay=1, mail=1)
    middleware = [chain.Jump(), review] if outer else [review, chain.Jump()]
    declare(chain.react([[PAY, MAIL]], middleware))
    turn = begin("refunds")

    edit = Edit({"order": "A1", "amount": "3", "note": ""})
    while turn.status == "suspended":
        for row in turns.waiting(turn):
            turns.decide(row, edit if row.tool_name == "pay" else None)
        turns.resume(turn)

    assert turn.status == "completed", turn.last_error
    assert sorted(world.names()) == ["mail", "pay"]
    assert [str(args["amount"]) for n, args in world.effects if n == "pay"] == ["3"]
    assert len(turns.rows(turn)) == 2


def test_middleware_that_swallows_the_pause_is_not_believed() -> None:
    declare(chain.react([[PAY]], [chain.Swallow()]))
    turn = begin("refunds")

    assert (turn.status, world.effects) == ("needs_attention", [])
    assert "swallowed the pause" in turn.last_error


def test_arguments_that_middleware_changes_are_what_people_see_and_what_runs() -> None:
    declare(chain.react([[PAY]], [chain.Change(note="checked")]), pay)
    turn = begin("refunds")

    assert turns.only(turn).args["note"] == "checked"
    turns.decide_and_resume(turn)
    assert turn.status == "completed", turn.last_error
    assert [args["note"] for _name, args in world.effects] == ["checked"]


@MODES
def test_what_changes_after_the_review_does_not_run(mode: str) -> None:
    middleware = [chain.review(mode, pay=1), chain.Change(note="sneaked in")]
    declare(chain.react([[PAY]], middleware), pay, mail, note)
    turn = begin("refunds")

    assert "note" not in turns.only(turn).args
    turns.decide_and_resume(turn)

    assert turn.status == "completed", turn.last_error
    assert [args["note"] for _name, args in world.effects] == [""]


@MODES
def test_a_review_that_no_row_was_written_for_is_asked_for_after_a_crash(
    mode: str,
) -> None:
    def die() -> None:
        raise Crash

    declare(chain.react([[PAY, MAIL]], [chain.review(mode, ["approve"], pay=1)]))
    with armed("suspend.before_commit", die), pytest.raises(Crash):
        begin("refunds")
    turn = AgentTurn.objects.get()
    turns.recover(turn)

    # Batched, the middleware holds the whole reply until its part is decided.
    asked = ["pay", "mail"] if mode == "per_call" else ["pay"]
    assert [row.tool_name for row in turns.rows(turn)] == asked
    assert turns.rows(turn)[0].allowed_decisions == ["approve"]
    while turn.status == "suspended":
        turns.decide_and_resume(turn)
    assert turn.status == "completed", turn.last_error
    assert sorted(world.names()) == ["mail", "pay"]
    assert world.model_calls == ["reply 0", "reply 1"]


@MODES
def test_an_edited_call_runs_once_though_its_task_is_run_again(mode: str) -> None:
    middleware = [chain.Fail(), chain.review(mode, pay=1)]
    declare(chain.react([[PAY]], middleware))
    turn = begin("refunds")
    edit = Edit({"order": "A1", "amount": "3", "note": ""})
    turns.decide_and_resume(turn, edit)
    assert (turn.status, turn.last_error) == ("ready", "ConnectionError: away")
    turns.resume(turn)

    assert turn.status == "completed", turn.last_error
    assert [str(args["amount"]) for _name, args in world.effects] == ["3"]
    assert turns.step_statuses(turn) == ["succeeded"]
    assert "amount from" in world.told[0][1]


def test_the_reviewer_sees_the_conversation_and_the_models_reason() -> None:
    declare(chain.react([[PAY]]))
    turn = begin("refunds", "refund A1 please")

    context = turns.only(turn).context
    assert context["agent_reason"] == "reason 0"
    assert [one["role"] for one in context["messages"]] == ["user", "assistant"]
    assert context["messages"][0]["content"] == "refund A1 please"


def test_a_review_in_a_subgraph_pauses_and_goes_on() -> None:
    from langgraph.graph import END, START, MessagesState, StateGraph

    def factory(tools: list[Any]) -> Any:
        inner = chain.react([[PAY, MAIL]], [chain.review("per_call", pay=1)])(tools)
        outer = StateGraph(MessagesState)
        outer.add_node("inner", inner)
        outer.add_edge(START, "inner")
        outer.add_edge("inner", END)
        return outer

    declare(factory)
    turn = begin("refunds")
    assert [row.tool_name for row in turns.rows(turn)] == ["pay", "mail"]
    edit = Edit({"order": "A1", "amount": "3", "note": ""})
    for row in turns.waiting(turn):
        turns.decide(row, edit if row.tool_name == "pay" else None)
    turns.resume(turn)

    assert (turn.status, turn.output) == ("completed", "done")
    assert sorted(world.names()) == ["mail", "pay"]
    assert world.model_calls == ["reply 0", "reply 1"]

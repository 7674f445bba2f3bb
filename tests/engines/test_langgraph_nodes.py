"""Graphs of one's own: questions, `Send`, subgraphs, `ToolNode`, tools that nodes call."""

from __future__ import annotations

import threading
from typing import Any, TypedDict

import pytest

from hitl_approvals import Edit, Reject, Respond, current_call, tool
from hitl_approvals.exceptions import ApprovalRejected
from hitl_approvals.registry import registry
from hitl_approvals.testing.failpoints import armed
from tests.concurrency.meeting import together
from tests.engines.langgraph_support import (
    MAIL,
    NOTE,
    PAY,
    begin,
    call,
    declare,
    graphs,
)
from tests.support import turns
from tests.support.agents import mail, note, pay
from tests.support.world import Crash, world

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]

LOG: dict[str, Any] = {"log": []}


# questions


def test_every_question_of_a_fan_out_is_asked_and_gets_its_answer() -> None:
    declare(graphs.questions({"type": "string"}))
    turn = begin("refunds", {"questions": ["color?", "size?", "when?"]})

    rows = {row.payload: row for row in turns.rows(turn)}
    assert set(rows) == {"color?", "size?", "when?"}
    assert {row.kind for row in rows.values()} == {"question"}
    assert rows["color?"].response_schema == {"type": "string"}
    turns.decide(rows["size?"], Respond("large"))
    turns.decide(rows["color?"], Respond("red"))
    assert turns.resume(turn) == "dropped"
    turns.decide(rows["when?"], Respond("now"))
    turns.resume(turn)

    assert turn.status == "completed", turn.last_error
    assert turn.output["answers"] == [
        ["color?", "red"],
        ["size?", "large"],
        ["when?", "now"],
    ]


def test_a_node_may_ask_one_question_after_the_other() -> None:
    from langgraph.types import interrupt

    def ask(state: Any) -> Any:
        first = interrupt({"question": "color?"})
        return {"log": [first, interrupt({"question": "size?", "color": first})]}

    declare(lambda tools: graphs.nodes(ask))
    turn = begin("refunds", LOG)
    turns.decide_and_resume(turn, Respond("red"))

    (second,) = turns.waiting(turn)
    assert second.payload == {"question": "size?", "color": "red"}
    turns.decide_and_resume(turn, Respond("large"))
    assert (turn.status, turn.output) == ("completed", {"log": ["red", "large"]})


def test_an_answer_is_not_given_to_the_next_question_of_a_node_that_failed() -> None:
    from langgraph.types import interrupt

    failures = [ConnectionError("away")]

    def ask(state: Any) -> Any:
        first = interrupt("color?")
        if failures:
            raise failures.pop()
        return {"log": [first, interrupt("size?")]}

    declare(lambda tools: graphs.nodes(ask))
    turn = begin("refunds", LOG)
    turns.decide_and_resume(turn, Respond("red"))
    assert (turn.status, turn.last_error) == ("ready", "ConnectionError: away")
    turns.resume(turn)

    (second,) = turns.waiting(turn)
    assert second.payload == "size?"
    turns.decide_and_resume(turn, Respond("large"))
    assert (turn.status, turn.output) == ("completed", {"log": ["red", "large"]})


def test_an_answer_that_a_failing_node_did_not_take_is_given_again() -> None:
    from langgraph.types import interrupt

    failures: list[Exception] = []

    def ask(state: Any) -> Any:
        if failures:
            raise failures.pop()
        return {"log": [interrupt("color?")]}

    declare(lambda tools: graphs.nodes(ask))
    turn = begin("refunds", LOG)
    failures.append(ConnectionError("away"))
    turns.decide_and_resume(turn, Respond("red"))
    assert turn.status == "ready"
    turns.resume(turn)

    assert (turn.status, turn.output) == ("completed", {"log": ["red"]})
    assert len(turns.rows(turn)) == 1


def test_a_refused_question_comes_back_as_a_rejection() -> None:
    declare(graphs.questions())
    turn = begin("refunds", {"questions": ["color?"]})
    turns.decide_and_resume(turn, Reject("none of your business"))

    assert turn.output["answers"] == [
        ["color?", {"type": "reject", "message": "none of your business"}]
    ]


def test_a_typed_answer_arrives_as_its_type() -> None:
    from pydantic import BaseModel

    class Color(BaseModel):
        name: str

    declare(graphs.questions(Color))
    turn = begin("refunds", {"questions": ["color?"]})
    schema = turns.only(turn).response_schema
    assert schema["properties"]["name"]["type"] == "string"
    turns.decide_and_resume(turn, Respond({"name": "red"}))

    assert turn.output["answers"] == [["color?", {"name": "red"}]]


def test_a_refusal_that_the_graph_cannot_take_is_a_visible_stop() -> None:
    from pydantic import BaseModel

    class Color(BaseModel):
        name: str

    declare(graphs.questions(Color))
    turn = begin("refunds", {"questions": ["color?"]})
    turns.decide_and_resume(turn, Reject("no"))

    assert turn.status == "needs_attention"
    assert "does not take the answer" in turn.last_error


# subgraphs


def test_a_subgraph_pauses_and_goes_on() -> None:
    from langgraph.graph import END, START, MessagesState, StateGraph

    def factory(tools: list[Any]) -> Any:
        inner = graphs.tool_node([[PAY, MAIL]])(tools).compile()
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


# several calls in one task


def test_two_calls_of_one_tool_node_wait_together_and_run_once() -> None:
    declare(graphs.tool_node([[PAY, NOTE, MAIL]]))
    turn = begin("refunds")

    assert [row.tool_name for row in turns.rows(turn)] == ["pay", "mail"]
    assert world.names() == ["note"]
    turns.decide_and_resume(turn)

    assert turn.status == "completed", turn.last_error
    assert sorted(world.names()) == ["mail", "note", "pay"]
    assert len(turns.steps(turn)) == 3
    assert [row.outcome_status for row in turns.rows(turn)] == ["succeeded"] * 2


def test_a_question_beside_a_gated_call_in_one_task_gets_its_own_answer() -> None:
    from langchain_core.tools import tool as langchain_tool
    from langgraph.types import interrupt

    @langchain_tool
    def ask(question: str) -> str:
        """Ask a person."""
        return str(interrupt(question))

    replies = [[PAY, call("c7", "ask", question="color?"), MAIL]]
    declare(graphs.tool_node(replies, [ask]))
    turn = begin("refunds")
    while turn.status == "suspended":
        for row in turns.waiting(turn):
            turns.decide(row, Respond("red") if row.kind == "question" else None)
        turns.resume(turn)

    assert turn.status == "completed", turn.last_error
    assert sorted(world.names()) == ["mail", "pay"]
    assert dict(world.told)["c7"] == "red"
    assert len(turns.rows(turn)) == 3


def test_the_same_id_twice_in_a_reply_is_two_calls() -> None:
    other = call("c1", "pay", order="B2", amount="7")
    declare(graphs.tool_node([[PAY, other]]))
    turn = begin("refunds")

    assert [row.args["order"] for row in turns.rows(turn)] == ["A1", "B2"]
    turns.decide_and_resume(turn)
    assert sorted(args["order"] for _n, args in world.effects) == ["A1", "B2"]


# tools that nodes call as functions


def test_a_node_calls_a_gated_tool_as_a_function() -> None:
    seen: list[Any] = []

    def work(state: Any) -> Any:
        note("before")
        result = pay("A1", 5)
        seen.append((result, threading.get_ident()))
        return {"log": [result, note("after")]}

    declare(lambda tools: graphs.nodes(work))
    turn = begin("refunds", LOG)
    assert (turn.status, world.names()) == ("suspended", ["note"])
    turns.decide_and_resume(turn, Edit({"order": "A1", "amount": "3", "note": ""}))

    assert turn.status == "completed", turn.last_error
    assert world.names() == ["note", "pay", "note"]
    assert turn.output == {"log": [{"effect": 2}, {"effect": 3}]}
    assert seen[0][1] != threading.get_ident()


def test_a_node_reads_why_its_tool_was_refused() -> None:
    def work(state: Any) -> Any:
        try:
            pay("A1", 5)
        except ApprovalRejected as refusal:
            return {"log": [refusal.reason]}
        return {"log": ["paid"]}

    declare(lambda tools: graphs.nodes(work))
    turn = begin("refunds", LOG)
    turns.decide_and_resume(turn, Reject("no"))

    assert turn.output["log"][0].endswith("Reason: no")
    assert world.effects == []


def test_a_question_after_a_gated_call_of_the_same_node_gets_its_own_answer() -> None:
    from langgraph.types import interrupt

    def work(state: Any) -> Any:
        paid = pay("A1", 5)
        answer = interrupt("color?")
        return {"log": [paid, answer, mail("kim")]}

    declare(lambda tools: graphs.nodes(work))
    turn = begin("refunds", LOG)
    turns.decide_and_resume(turn)
    turns.decide_and_resume(turn, Respond("red"))
    turns.decide_and_resume(turn)

    assert turn.status == "completed", turn.last_error
    assert turn.output["log"] == [{"effect": 1}, "red", {"effect": 2}]
    assert [row.kind for row in turns.rows(turn)].count("question") == 1


def test_an_async_node_awaits_an_async_tool() -> None:
    name = "async_pay"

    @tool(name=name, effect="unsafe")
    async def async_pay(order: str) -> Any:
        assert current_call() is not None
        return world.act("pay", order=order)

    async def work(state: Any) -> Any:
        return {"log": [await async_pay("A1")]}

    try:
        declare(lambda tools: graphs.nodes(work), async_pay)
        turn = begin("refunds", LOG)
        assert (turn.status, world.names()) == ("suspended", [])
        turns.decide_and_resume(turn)
    finally:
        del registry.tools[name]

    assert turn.status == "completed", turn.last_error
    assert (turn.output, world.names()) == ({"log": [{"effect": 1}]}, ["pay"])


def test_a_model_calls_an_async_tool() -> None:
    name = "async_mail"

    @tool(name=name, effect="unsafe")
    async def async_mail(to: str) -> Any:
        return world.act("mail", to=to)

    try:
        declare(graphs.tool_node([[call("c1", name, to="kim")]]), async_mail)
        turn = begin("refunds")
        turns.decide_and_resume(turn)
    finally:
        del registry.tools[name]

    assert (turn.status, world.names()) == ("completed", ["mail"])


def test_a_hand_written_loop_hands_calls_to_the_tools_itself() -> None:
    def factory(tools: list[Any]) -> Any:
        by_name = {one.name: one for one in tools}

        async def work(state: Any) -> Any:
            told = []
            for one in (PAY, MAIL):
                made = {**one, "type": "tool_call"}
                told.append(await by_name[one["name"]].ainvoke(made))
            return {"log": [[one.tool_call_id, one.status] for one in told]}

        return graphs.nodes(work)

    declare(factory)
    turn = begin("refunds", LOG)
    assert turns.only(turn).tool_call_id == "c1"
    turns.decide_and_resume(turn)
    turns.decide_and_resume(turn, Reject("no"))

    assert turn.status == "completed", turn.last_error
    assert turn.output == {"log": [["c1", "success"], ["c2", "error"]]}
    assert world.names() == ["pay"]


def test_a_tool_that_a_coroutine_calls_synchronously_is_refused() -> None:
    async def work(state: Any) -> Any:
        return {"log": [pay("A1", 5)]}

    declare(lambda tools: graphs.nodes(work))
    turn = begin("refunds", LOG)

    assert (turn.status, world.effects) == ("ready", [])
    assert "Await it" in turn.last_error


def test_parallel_nodes_pause_together_and_the_free_one_runs_once() -> None:
    def first(state: Any) -> Any:
        return {"log": [pay("A1", 5)]}

    def second(state: Any) -> Any:
        return {"log": [mail("kim")]}

    def third(state: Any) -> Any:
        return {"log": [note("hello")]}

    declare(lambda tools: graphs.nodes(first, second, third, parallel=True))
    turn = begin("refunds", LOG)
    assert {row.tool_name for row in turns.rows(turn)} == {"pay", "mail"}
    assert world.names() == ["note"]
    turns.decide_and_resume(turn)

    assert turn.status == "completed", turn.last_error
    assert sorted(world.names()) == ["mail", "note", "pay"]


def test_a_retried_node_does_not_run_its_calls_again() -> None:
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import RetryPolicy

    failures = [ConnectionError("away")]

    def work(state: Any) -> Any:
        told = note("hello")
        if failures:
            raise failures.pop()
        return {"log": [told]}

    def factory(tools: list[Any]) -> Any:
        graph = StateGraph(graphs.Log)
        policy = RetryPolicy(initial_interval=0, jitter=False)
        graph.add_node("work", work, retry_policy=policy)
        graph.add_edge(START, "work")
        graph.add_edge("work", END)
        return graph

    declare(factory)
    turn = begin("refunds", LOG)

    assert (turn.status, world.names()) == ("completed", ["note"])


def test_a_failing_sibling_does_not_cut_off_a_call_under_way() -> None:
    failures = [ValueError("broken")]

    def calls(state: Any) -> Any:
        return {"log": [note("hello")]}

    async def fails(state: Any) -> Any:
        if failures:
            raise failures.pop()
        return {}

    declare(lambda tools: graphs.nodes(calls, fails, parallel=True))
    turn = begin("refunds", LOG)
    assert turn.status == "ready"
    turns.resume(turn)

    assert turn.status == "completed", turn.last_error
    assert world.names() == ["note"]
    assert turns.step_statuses(turn) == ["succeeded"]


def test_a_workflow_of_the_functional_api_is_a_graph_as_well() -> None:
    from langgraph.func import entrypoint, task
    from langgraph.types import interrupt

    @task
    def refund(order: str) -> Any:
        return pay(order, 5)

    def factory(tools: list[Any]) -> Any:
        @entrypoint()
        def work(given: Any) -> Any:
            paid = [one.result() for one in [refund("A1"), refund("B2")]]
            return {"paid": paid, "color": interrupt("color?")}

        return work

    declare(factory)
    turn = begin("refunds", {"order": "A1"})
    while turn.status == "suspended":
        for row in turns.waiting(turn):
            turns.decide(row, Respond("red") if row.kind == "question" else None)
        turns.resume(turn)

    assert turn.status == "completed", turn.last_error
    assert turn.output == {"paid": [{"effect": 1}, {"effect": 2}], "color": "red"}
    assert len(turns.rows(turn)) == 3


def test_a_run_that_died_after_the_end_gives_what_the_graph_puts_out() -> None:
    from langgraph.graph import END, START, StateGraph

    def work(state: Any) -> Any:
        return {"log": [pay("A1", 5)], "secret": "internal"}

    class Said(TypedDict):
        log: list[Any]

    class All(Said):
        secret: str

    def factory(tools: list[Any]) -> Any:
        graph = StateGraph(All, output_schema=Said)
        graph.add_node("work", work)
        graph.add_edge(START, "work")
        graph.add_edge("work", END)
        return graph

    def die() -> None:
        raise Crash

    declare(factory)
    turn = begin("refunds", {"secret": ""})
    turns.decide(turns.only(turn))
    with armed("end.before_commit", die), pytest.raises(Crash):
        turns.resume(turn)
    turns.recover(turn)

    assert (turn.status, turn.output) == ("completed", {"log": [{"effect": 1}]})
    assert world.names() == ["pay"]


# at once


def test_of_two_workers_that_go_on_at_once_one_does() -> None:
    from hitl_approvals import run_turn

    declare(graphs.tool_node([[PAY, MAIL]]))
    turn = begin("refunds")
    for row in turns.waiting(turn):
        turns.decide(row)
    turns.make_due(turn)

    outcomes = together(lambda: run_turn(turn.pk), lambda: run_turn(turn.pk))

    turn.refresh_from_db()
    assert sorted(outcomes) == ["completed", "dropped"]
    assert (turn.status, sorted(world.names())) == ("completed", ["mail", "pay"])

"""Turns of LangGraph agents: conversations, restarts, starts that died, crashes."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from hitl_approvals import services
from hitl_approvals.checkpoints.models import Checkpoint
from hitl_approvals.exceptions import (
    HitlConfigurationError,
    LeaseLost,
    NotInTurn,
    ToolNotStarted,
)
from hitl_approvals.models import AgentTurn
from hitl_approvals.services.run import Run
from hitl_approvals.testing.failpoints import armed
from tests.engines.langgraph_support import (
    MAIL,
    NOTE,
    PAY,
    begin,
    call,
    chain,
    declare,
    graphs,
)
from tests.support import turns
from tests.support.agents import mail, note, pay
from tests.support.world import Crash, raises, world

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


def die() -> None:
    raise Crash


# conversations


def test_a_conversation_goes_on_over_its_turns() -> None:
    declare(chain.react([[PAY], "paid", [MAIL], "mailed"]))
    first = begin("refunds", "refund A1", thread_id="kim")
    turns.decide_and_resume(first)
    assert (first.status, first.output) == ("completed", "paid")

    second = begin("refunds", "and tell her", thread_id="kim")

    # The approved call of the first turn stands in the history: it is not run again.
    assert [row.tool_name for row in turns.rows(second)] == ["mail"]
    context = turns.only(second).context
    assert context["messages"][0]["content"] == "refund A1"
    turns.decide_and_resume(second)
    assert (second.status, second.output) == ("completed", "mailed")
    assert world.names() == ["pay", "mail"]
    assert world.model_calls == [f"reply {n}" for n in range(4)]


def test_threads_and_agents_do_not_share_a_conversation() -> None:
    replies = ["hello", "again"]
    declare(chain.react(replies))
    declare(chain.react(replies), name="others")

    said = [
        begin("refunds", thread_id="kim").output,
        begin("refunds", thread_id="lee").output,
        begin("others", thread_id="kim").output,
        begin("refunds", thread_id="kim").output,
    ]

    assert said == ["hello", "hello", "hello", "again"]


def test_a_call_of_an_earlier_turn_is_not_run_because_it_was_approved_then() -> None:
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    def factory(tools: list[Any]) -> Any:
        model = graphs.playing([[PAY]])

        def ask(state: Any) -> Any:
            if any(one.type == "ai" for one in state["messages"]):
                return {}
            return {"messages": [model.invoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("ask", ask)
        graph.add_node("tools", ToolNode(tools))
        graph.add_edge(START, "ask")
        graph.add_edge("ask", "tools")
        graph.add_edge("tools", END)
        return graph

    declare(factory)
    turns.decide_and_resume(begin("refunds", thread_id="kim"))
    assert world.names() == ["pay"]

    second = begin("refunds", thread_id="kim")

    assert (second.status, world.names()) == ("suspended", ["pay"])
    assert turns.only(second).status == "pending"


# restarts and turns that came to nothing


@pytest.mark.parametrize("earlier", [True, False], ids=["later-turn", "first-turn"])
def test_a_restarted_turn_does_not_see_what_was_abandoned(earlier: bool) -> None:
    declare(chain.react(["hello", [PAY]] if earlier else [[PAY]]))
    if earlier:
        begin("refunds", "hi", thread_id="kim")
    turn = begin("refunds", "refund A1", thread_id="kim")
    first = turns.only(turn)
    newer = {**turn.state, "framework_version": "999.0"}
    AgentTurn.objects.filter(pk=turn.pk).update(state=newer)
    turns.decide_and_resume(turn)
    assert turn.status == "needs_attention"

    services.restart(turn.pk, by=None, via="test")
    turns.resume(turn)

    assert turn.status == "suspended", turn.last_error
    (again,) = turns.waiting(turn)
    assert again.pk != first.pk
    said = [one["content"] for one in again.context["messages"]]
    before = ["hi", "hello"] if earlier else []
    assert said == [*before, "refund A1", f"reason {len(before) // 2}"]
    turns.decide_and_resume(turn)
    assert (turn.status, world.names()) == ("completed", ["pay"])


def test_a_turn_after_a_cancelled_one_does_not_see_its_open_calls() -> None:
    declare(chain.react(["hello", [PAY]]))
    begin("refunds", "hi", thread_id="kim")
    cancelled = begin("refunds", "refund A1", thread_id="kim")
    services.cancel(cancelled.pk, by=None, via="test")

    turn = begin("refunds", "refund A2", thread_id="kim")

    said = [one["content"] for one in turns.only(turn).context["messages"]]
    assert said == ["hi", "hello", "refund A2", "reason 1"]


# runs that died


def test_a_start_that_died_before_its_pause_goes_on() -> None:
    declare(chain.react([[PAY, NOTE]]))
    with armed("suspend.before_commit", die), pytest.raises(Crash):
        begin("refunds", "refund A1")
    turn = AgentTurn.objects.get()
    assert turns.rows(turn) == []

    turns.recover(turn)

    row = turns.only(turn)
    assert [one["content"] for one in row.context["messages"]] == [
        "refund A1",
        "reason 0",
    ]
    assert (world.names(), world.model_calls) == (["note"], ["reply 0"])
    turns.decide_and_resume(turn)
    assert (turn.status, world.names()) == ("completed", ["note", "pay"])


def test_a_run_that_died_after_the_graphs_end_only_ends() -> None:
    declare(chain.react([[PAY], "all done"]))
    turn = begin("refunds")
    turns.decide(turns.only(turn))
    with armed("end.before_commit", die), pytest.raises(Crash):
        turns.resume(turn)

    turns.recover(turn)

    assert (turn.status, turn.output) == ("completed", "all done")
    assert (world.names(), world.model_calls) == (["pay"], ["reply 0", "reply 1"])


def test_a_failing_model_is_asked_again_and_no_call_is() -> None:
    replies: list[Any] = [[PAY, NOTE]]
    declare(chain.react(replies))
    turn = begin("refunds")
    turns.decide(turns.only(turn))

    class Broken(list[Any]):
        def __getitem__(self, index: Any) -> Any:
            raise ConnectionError("the model is away")

        def __len__(self) -> int:
            return 9

    broken = chain.react(Broken())
    declare(broken)
    turns.resume(turn)
    assert (turn.status, turn.last_error) == (
        "ready",
        "ConnectionError: the model is away",
    )
    declare(chain.react([[PAY, NOTE], "done at last"]))
    turns.resume(turn)

    assert (turn.status, turn.output) == ("completed", "done at last")
    assert world.names() == ["note", "pay"]


def test_a_free_call_in_doubt_stops_the_graph_where_it_is() -> None:
    world.plan("note", raises(TimeoutError("no answer")))
    # Would make a tool result of the stop, if it could.
    declare(graphs.tool_node([[NOTE]], handle_tool_errors=True))
    turn = begin("refunds")

    doubt = turns.only(turn)
    assert (turn.status, doubt.status) == ("suspended", "in_doubt")
    assert world.model_calls == ["reply 0"]
    turns.settle(doubt, "happened")
    turns.resume(turn)

    assert turn.status == "completed", turn.last_error
    assert world.model_calls == ["reply 0", "reply 1"]
    assert "stopped" not in world.told[0][1]


def test_a_free_call_that_could_not_start_is_tried_again() -> None:
    world.plan("note", raises(ToolNotStarted("not yet")))
    declare(graphs.tool_node([[NOTE]], handle_tool_errors=True))
    turn = begin("refunds")
    assert (turn.status, world.effects) == ("ready", [])
    assert "could not be started yet" in turn.last_error
    turns.resume(turn)

    assert (turn.status, world.names()) == ("completed", ["note"])
    assert world.model_calls == ["reply 0", "reply 1"]


def test_a_worker_that_lost_its_turn_does_not_move_the_conversation_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    lost: list[bool] = []

    def check(run: Run) -> None:
        if lost:
            raise LeaseLost

    def first(state: Any) -> Any:
        lost.append(True)
        return {"log": ["first"]}

    def second(state: Any) -> Any:
        world.model_calls.append("second")
        return {"log": ["second"]}

    monkeypatch.setattr(Run, "check_lease", check)
    saver = InMemorySaver()
    declare(lambda tools: graphs.nodes(first, second).compile(checkpointer=saver))
    turn = begin("refunds", {"log": []}, thread_id="kim")

    assert (turn.status, world.model_calls) == ("running", [])
    latest = saver.get_tuple({"configurable": {"thread_id": "refunds:kim"}})
    assert latest.checkpoint["channel_values"].get("log", []) == []


def test_a_worker_that_lost_its_turn_does_not_move_a_graph_within_a_node_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost: list[bool] = []

    def check(run: Run) -> None:
        if lost:
            raise LeaseLost

    def first(state: Any) -> Any:
        lost.append(True)
        return {"log": ["first"]}

    def second(state: Any) -> Any:
        world.model_calls.append("second")
        return {"log": ["second"]}

    inner = graphs.nodes(first, second).compile()

    def outer(state: Any) -> Any:
        return {"log": inner.invoke({"log": []})["log"]}

    monkeypatch.setattr(Run, "check_lease", check)
    declare(lambda tools: graphs.nodes(outer))
    turn = begin("refunds", {"log": []})

    assert (turn.status, world.model_calls) == ("running", [])
    # What came in, and the way to the first node: both were saved before.
    assert Checkpoint.objects.exclude(checkpoint_ns="").count() == 2


@pytest.mark.parametrize("read", [1, 2], ids=["its place", "what it begins with"])
def test_a_worker_that_stands_still_once_it_has_read_pays_nothing_twice(
    read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hitl_approvals.agents.framework import in_worker
    from hitl_approvals.agents.langgraph.saving import Saving

    declare(chain.react([[PAY], [MAIL], "done"]))
    turn = begin("refunds")
    turns.decide(turns.only(turn))
    reads: list[int] = []
    make = Saving.__init__

    def taken_over() -> None:
        turns.recover(turn)
        turns.decide_and_resume(turn)

    def made(self: Saving, *args: Any) -> None:
        make(self, *args)
        get = self.saver.aget_tuple

        async def standing_still(config: Any) -> Any:
            found = await get(config)
            reads.append(1)
            if len(reads) == read:
                await in_worker(taken_over)
            return found

        self.saver.aget_tuple = standing_still

    with monkeypatch.context() as patched:
        patched.setattr(Saving, "__init__", made)
        turns.resume(turn)

    turn.refresh_from_db()
    assert (turn.status, turn.output) == ("completed", "done")
    assert world.names() == ["pay", "mail"]
    assert turn.interrupts.count() == 2
    # The next turn begins where the conversation stands for whoever came through.
    declare(chain.react([[PAY], [MAIL], "done", "and more"]))
    assert begin("refunds", thread_id=turn.thread_id).output == "and more"


def test_a_resumed_graph_begins_with_what_was_read_to_find_its_place() -> None:
    declare(chain.react([[PAY], "done"]))
    turn = begin("refunds")
    turns.decide(turns.only(turn))

    with CaptureQueriesContext(connection) as asked:
        turns.resume(turn)

    assert turn.status == "completed"
    read = [
        one["sql"]
        for one in asked
        if one["sql"].startswith("SELECT") and "hitl_checkpoints_" in one["sql"]
    ]
    assert len(read) == 3


def test_a_structured_response_is_the_output() -> None:
    from langchain.agents.structured_output import ToolStrategy

    from hitl_approvals.checkpoints import DjangoCheckpointSaver

    answer = [call("c9", "Refund", order="A1", amount=5)]
    declare(
        chain.react(
            [[PAY], answer],
            response_format=ToolStrategy(graphs.Refund),
            checkpointer=DjangoCheckpointSaver(allow=[graphs.Refund]),
        )
    )
    turn = begin("refunds")
    turns.decide_and_resume(turn)

    assert turn.status == "completed", turn.last_error
    assert turn.output == {"order": "A1", "amount": 5}


def test_a_graph_reads_the_options_of_the_turn_as_its_context() -> None:
    from langgraph.graph import END, START, StateGraph
    from langgraph.runtime import Runtime

    def work(state: Any, runtime: Runtime[Any]) -> Any:
        return {"log": [runtime.context["tenant"]]}

    work.__annotations__["runtime"] = Runtime

    def factory(tools: list[Any]) -> Any:
        graph = StateGraph(graphs.Log, context_schema=dict)
        graph.add_node("work", work)
        graph.add_edge(START, "work")
        graph.add_edge("work", END)
        return graph

    declare(factory)
    turn = begin("refunds", {"log": []}, execute_options={"tenant": "acme"})

    assert turn.status == "completed", turn.last_error
    assert turn.output == {"log": ["acme"]}


# what cannot work is said


def test_a_graph_without_a_checkpointer_needs_ours(settings: Any) -> None:
    from hitl_approvals.agents.langgraph import building

    settings.INSTALLED_APPS = [
        one for one in settings.INSTALLED_APPS if one != building.CHECKPOINTS
    ]
    declare(chain.react([]))
    turn = begin("refunds")

    assert turn.status == "ready"
    assert 'Add "hitl_approvals.checkpoints" to INSTALLED_APPS' in turn.last_error


def test_a_checkpointer_of_the_graph_is_used_as_it_is(tmp_path: Any) -> None:
    import sqlite3

    from langgraph.checkpoint.sqlite import SqliteSaver

    saver = SqliteSaver(sqlite3.connect(tmp_path / "own", check_same_thread=False))
    declare(chain.react([[PAY], "paid", "again"], checkpointer=saver))
    turn = begin("refunds", thread_id="kim")
    turns.decide_and_resume(turn)

    assert (turn.status, turn.output) == ("completed", "paid")
    assert list(saver.list({"configurable": {"thread_id": "refunds:kim"}}))
    turn = begin("refunds", thread_id="kim")
    assert turn.output == "again"
    saver.conn.close()


@pytest.mark.parametrize("where", ["interrupt_before", "interrupt_after"])
def test_a_breakpoint_that_asks_nobody_is_refused(where: str) -> None:
    from hitl_approvals.agents.langgraph import building
    from hitl_approvals.registry import registry

    declare(chain.react([[PAY]], **{where: ["tools"]}))

    with pytest.raises(HitlConfigurationError, match="without a question"):
        building.graph_of(registry.agents["refunds"])


def test_a_factory_that_makes_no_graph_is_refused() -> None:
    from hitl_approvals.agents.langgraph import building
    from hitl_approvals.registry import registry

    declare(lambda tools: "no graph")

    with pytest.raises(HitlConfigurationError, match="returned a str"):
        building.graph_of(registry.agents["refunds"])


def test_checkpoints_that_are_gone_are_a_visible_stop() -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    saver = InMemorySaver()
    declare(chain.react([[PAY]], checkpointer=saver))
    turn = begin("refunds", thread_id="kim")
    saver.delete_thread("refunds:kim")

    turns.decide_and_resume(turn)

    assert turn.status == "needs_attention"
    assert "its checkpoints were removed" in turn.last_error
    # The call was decided and ran; a restart asks again and shows it as a repeat.
    assert world.names() == ["pay"]


def test_a_node_that_is_gone_is_a_visible_stop() -> None:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import interrupt

    saver = InMemorySaver()

    def ask(state: Any) -> Any:
        return {"log": [interrupt("go on?")]}

    declare(lambda tools: graphs.nodes(ask).compile(checkpointer=saver))
    turn = begin("refunds", {"log": []})
    from hitl_approvals import Respond

    turns.decide(turns.only(turn), Respond("yes"))
    ask.__name__ = "inquire"
    declare(lambda tools: graphs.nodes(ask).compile(checkpointer=saver))
    turns.resume(turn)

    assert turn.status == "needs_attention"
    assert "is not among the nodes of its graph now" in turn.last_error


# tools by themselves


def test_a_langchain_tool_outside_a_turn_keeps_to_the_gate() -> None:
    from hitl_approvals.agents.langgraph.tools import as_langchain

    assert as_langchain(note).invoke({"text": "hi"}) == {"effect": 1}
    with pytest.raises(NotInTurn):
        as_langchain(pay).invoke({"order": "A1", "amount": "5"})
    assert world.names() == ["note"]


def test_what_a_model_is_told_of_a_tool_is_its_own_schema() -> None:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    from hitl_approvals.agents.langgraph.tools import as_langchain

    told = convert_to_openai_tool(as_langchain(mail))["function"]

    assert (told["name"], told["description"]) == ("mail", "Send a mail.")
    assert list(told["parameters"]["properties"]) == ["to"]
    assert told["parameters"]["required"] == ["to"]


def test_an_unreadable_call_is_an_error_for_the_model() -> None:
    declare(chain.react([[call("c1", "pay", order="A1", amount="much")]]))
    turn = begin("refunds")

    assert (turn.status, turns.rows(turn)) == ("completed", [])
    assert "The tool did not run." in world.told[0][1]

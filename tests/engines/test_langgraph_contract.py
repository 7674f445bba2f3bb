"""The contract of every kind of agent, kept by agents of LangChain and LangGraph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hitl_approvals import Reject
from hitl_approvals.agents.capabilities import Capabilities
from hitl_approvals.registry import Tool, agent
from hitl_approvals.testing import AgentContract
from hitl_approvals.testing.agent_contract_world import UNSAFE, Script, call

pytestmark = pytest.mark.engines

ADAPTER = "hitl_approvals.agents.langgraph.adapter"
GRAPHS = "tests.engines.langgraph_graphs"


class OfLangGraph(AgentContract):
    kind = "langgraph"
    preload = (ADAPTER, GRAPHS)
    pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]

    def make_asking_agent(
        self, name: str, payload: Any, response_schema: dict[str, Any]
    ) -> None:
        @agent(name, kind=self.kind)
        def asking(tools: list[Any]) -> Any:
            from langgraph.graph import END, START, StateGraph
            from langgraph.types import interrupt

            graph = StateGraph(dict)
            graph.add_node(
                "ask",
                lambda _state: interrupt(payload, response_schema=response_schema),
            )
            graph.add_edge(START, "ask")
            graph.add_edge("ask", END)
            return graph


class TestCreateAgent(OfLangGraph):
    """LangChain's agent: a task for each call."""

    def make_agent(
        self, name: str, tools: Sequence[Tool[Any, Any]], script: Script
    ) -> None:
        @agent(name, kind=self.kind, tools=tools)
        def built(gated: list[Any]) -> Any:
            from langchain.agents import create_agent

            from tests.engines.langgraph_graphs import Scripted

            return create_agent(Scripted(play=script.play), gated)

    def make_stubborn_agent(
        self, name: str, tools: Sequence[Tool[Any, Any]], script: Script
    ) -> bool:
        @agent(name, kind=self.kind, tools=tools)
        def built(gated: list[Any]) -> Any:
            from langchain.agents import create_agent

            from tests.engines.langchain_agents import Swallow
            from tests.engines.langgraph_graphs import Scripted

            model = Scripted(play=script.play)
            return create_agent(model, gated, middleware=[Swallow()])

        return True


class TestReviewPerCall(OfLangGraph):
    """LangChain's agent with its own review of each call before the tool."""

    mode = "per_call"

    @property
    def capabilities(self) -> Capabilities:
        # The middleware puts words of its own around the reviewer's.
        return replace(super().capabilities, reject_text=False)

    def make_agent(
        self, name: str, tools: Sequence[Tool[Any, Any]], script: Script
    ) -> None:
        mode = self.mode

        @agent(name, kind=self.kind, tools=tools)
        def built(gated: list[Any]) -> Any:
            from langchain.agents import create_agent
            from langchain.agents.middleware import HumanInTheLoopMiddleware

            from tests.engines.langgraph_graphs import Scripted

            decisions = {"allowed_decisions": ["approve", "edit", "reject"]}
            on = {one.name: decisions for one in tools if one.requires_approval}
            review = HumanInTheLoopMiddleware(on, interrupt_mode=mode)
            model = Scripted(play=script.play)
            return create_agent(model, gated, middleware=[review])


class TestReviewBatched(TestReviewPerCall):
    """LangChain's agent with its own review of a whole reply."""

    mode = "batched"

    def test_of_twin_ids_the_model_is_told_of_the_first(self) -> None:
        turn = self.start([call("c1", UNSAFE, "a"), call("c1", UNSAFE, "b", 2)])
        first, second = self.rows(turn)

        self.decide(first, Reject("not this one"))
        self.decide(second)
        self.go_on(turn)

        assert self.effects(UNSAFE) == [("b", 2)]
        [(call_id, text)] = self.told()
        assert call_id == "c1"
        assert "not this one" in text

"""The contract of every kind of agent, kept by agents of the OpenAI Agents SDK."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hitl_approvals.registry import Tool, agent
from hitl_approvals.testing import AgentContract
from hitl_approvals.testing.agent_contract_world import Script

pytestmark = pytest.mark.engines


class TestOpenAIAgents(AgentContract):
    kind = "openai_agents"
    preload = ("hitl_approvals.agents.openai_agents.adapter", "agents.testing")
    pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]

    def make_agent(
        self, name: str, tools: Sequence[Tool[Any, Any]], script: Script
    ) -> None:
        @agent(name, kind=self.kind, tools=tools)
        def built(gated: list[Any]) -> Any:
            return playing(script, gated)

    def make_stubborn_agent(
        self, name: str, tools: Sequence[Tool[Any, Any]], script: Script
    ) -> bool:
        @agent(name, kind=self.kind, tools=tools)
        def built(gated: list[Any]) -> Any:
            from agents import Agent
            from agents.testing import ScriptedModel, assistant_message, function_call

            # Nobody is asked, and what its tools raise becomes a text for the model.
            careless = [replace(one, needs_approval=False) for one in gated]
            helper = playing(script, careless).as_tool("helper", "Help.")
            asks = [function_call("helper", {"input": "go"}, call_id="h1")]
            model = ScriptedModel([asks, [assistant_message("done")]])
            return Agent(name="stubborn", model=model, tools=[helper])

        return True


def playing(script: Script, gated: list[Any]) -> Any:
    from agents import Agent

    from tests.engines.openai_agents_support import Playing

    model = Playing(lambda number, told, _items: script.play(number, told))
    return Agent(name="playing", model=model, tools=gated)

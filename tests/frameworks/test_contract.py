"""What the adapters share keeps the agent contract, by a kind from outside of the package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hitl_approvals import agent
from hitl_approvals.testing import AgentContract

pytestmark = pytest.mark.concurrency


def ask(script: Any, messages: Sequence[Any]) -> dict[str, Any]:
    """Let a script reply to a conversation."""
    number = sum(one["role"] == "assistant" for one in messages)
    told = [
        (one["tool_call_id"], one["content"])
        for one in messages
        if one["role"] == "tool"
    ]
    return script.play(number, told)


class TestScriptedFramework(AgentContract):
    kind = "tests.frameworks.scripted"

    def make_agent(self, name: str, tools: Any, script: Any) -> None:
        def model(messages: list[Any]) -> dict[str, Any]:
            return ask(script, messages)

        agent(name, kind=self.kind, tools=tools)(model)

    def make_asking_agent(self, name: str, payload: Any, response_schema: Any) -> None:
        def model(messages: list[Any]) -> dict[str, Any]:
            return {"question": payload, "schema": response_schema}

        agent(name, kind=self.kind)(model)

    def make_stubborn_agent(self, name: str, tools: Any, script: Any) -> bool:
        def model(messages: list[Any]) -> dict[str, Any]:
            return {**ask(script, messages), "stubborn": True}

        agent(name, kind=self.kind, tools=tools)(model)
        return True

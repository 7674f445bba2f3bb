"""The function agent keeps the contract that every kind of agent does."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_approvals import Turn, agent
from hitl_approvals.testing import AgentContract

pytestmark = pytest.mark.concurrency


def play(turn: Turn, script: Any) -> str:
    """Ask the script for replies until one has no calls."""
    messages: list[Any] = []
    told: list[tuple[str, str]] = []
    number = 0
    while True:
        reply = turn.step("model", script.play, number, told)
        number += 1
        messages.append({"role": "assistant", "content": reply["text"], **reply})
        if not reply["tool_calls"]:
            return reply["text"]
        answers = turn.call_tools(reply["tool_calls"], messages=messages)
        messages += answers
        told += [(one["tool_call_id"], one["content"]) for one in answers]


class TestFunctionAgent(AgentContract):
    kind = "function"

    def make_agent(self, name: str, tools: Any, script: Any) -> None:
        @agent(name, tools=tools)
        def scripted(turn: Turn, given: Any) -> str:
            return play(turn, script)

    def make_asking_agent(self, name: str, payload: Any, response_schema: Any) -> None:
        @agent(name)
        def asking(turn: Turn, given: Any) -> Any:
            return turn.interrupt(payload, response_schema=response_schema)

    def make_stubborn_agent(self, name: str, tools: Any, script: Any) -> bool:
        @agent(name, tools=tools)
        def stubborn(turn: Turn, given: Any) -> str:
            try:
                return play(turn, script)
            except Exception:  # noqa: BLE001  that is what is tested
                return "did it anyway"

        return True

"""The async function agent keeps the contract that every kind of agent does."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_approvals import AsyncTurn, agent
from hitl_approvals.testing import AgentContract

pytestmark = pytest.mark.concurrency


async def play(turn: AsyncTurn, script: Any) -> str:
    """Ask the script for replies until one has no calls."""
    messages: list[Any] = []
    told: list[tuple[str, str]] = []
    number = 0
    while True:
        reply = await turn.step("model", _asked, script, number, list(told))
        number += 1
        messages.append({"role": "assistant", "content": reply["text"], **reply})
        if not reply["tool_calls"]:
            return str(reply["text"])
        answers = await turn.call_tools(reply["tool_calls"], messages=messages)
        messages += answers
        told += [(one["tool_call_id"], one["content"]) for one in answers]


async def _asked(script: Any, number: int, told: list[tuple[str, str]]) -> Any:
    return script.play(number, told)


class TestAsyncFunctionAgent(AgentContract):
    kind = "function"

    def make_agent(self, name: str, tools: Any, script: Any) -> None:
        @agent(name, tools=tools)
        async def scripted(turn: AsyncTurn, given: Any) -> str:
            return await play(turn, script)

    def make_asking_agent(self, name: str, payload: Any, response_schema: Any) -> None:
        @agent(name)
        async def asking(turn: AsyncTurn, given: Any) -> Any:
            return await turn.interrupt(payload, response_schema=response_schema)

    def make_stubborn_agent(self, name: str, tools: Any, script: Any) -> bool:
        @agent(name, tools=tools)
        async def stubborn(turn: AsyncTurn, given: Any) -> str:
            try:
                return await play(turn, script)
            except Exception:  # noqa: BLE001  that is what is tested
                return "did it anyway"

        return True

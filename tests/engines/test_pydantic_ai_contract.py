"""The contract of every kind of agent, kept by agents of Pydantic AI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hitl_approvals.registry import Tool, agent
from hitl_approvals.testing import AgentContract
from hitl_approvals.testing.agent_contract_world import Script

pytestmark = pytest.mark.engines


class TestPydanticAI(AgentContract):
    kind = "pydantic_ai"
    preload = ("hitl_approvals.agents.pydantic_ai.loop", "pydantic_ai.models.function")
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
            from pydantic_ai.capabilities import Hooks

            hooks = Hooks()

            @hooks.on.tool_execute
            async def calm(_context: Any, *, args: Any, handler: Any, **_: Any) -> Any:
                try:
                    return await handler(args)
                except Exception:  # noqa: BLE001  that is what it is here for
                    return "All is well."

            return playing(script, gated, capabilities=[hooks])

        return True


def playing(script: Script, gated: list[Any], **options: Any) -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.messages import (
        ModelMessage,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
    )
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def reply(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        number = sum(isinstance(one, ModelResponse) for one in messages)
        told = [
            (part.tool_call_id, part.model_response_str(wrap_if_error=False))
            for message in messages
            for part in message.parts
            if isinstance(part, ToolReturnPart)
        ]
        said = script.play(number, told)
        calls = [
            ToolCallPart(one["name"], one["args"], one["id"])
            for one in said["tool_calls"]
        ]
        return ModelResponse(parts=[TextPart(said["text"]), *calls])

    return Agent(FunctionModel(reply), tools=gated, **options)

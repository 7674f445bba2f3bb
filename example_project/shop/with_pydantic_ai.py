"""The support agent as one of Pydantic AI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel

from example_project.shop.frameworks import INSTRUCTIONS
from example_project.shop.model import Message, ask_model, tool_result


def make_agent(tools: list[Any], model: str) -> Agent[Any, str]:
    """Return the agent; without a model's name it asks the scripted one."""
    return Agent(model or FunctionModel(reply), instructions=INSTRUCTIONS, tools=tools)


def reply(messages: list[ModelMessage], _info: Any) -> ModelResponse:
    """Let the scripted model reply, in the framework's own messages."""
    said = ask_model([one for message in messages for one in _plain(message)])
    calls = [
        ToolCallPart(call["name"], call["args"], call["id"])
        for call in said["tool_calls"]
    ]
    return ModelResponse(parts=[TextPart(said["content"]), *calls])


def _plain(message: ModelMessage) -> Iterator[Message]:
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            yield {"role": "user", "content": str(part.content)}
        elif isinstance(part, ToolReturnPart):
            text = part.model_response_str(wrap_if_error=False)
            yield tool_result(part.tool_name, text)

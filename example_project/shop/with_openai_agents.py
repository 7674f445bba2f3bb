"""The support agent as one of the OpenAI Agents SDK."""

from __future__ import annotations

from typing import Any, NoReturn

from agents import Agent, Model, ModelResponse, Usage
from agents.testing import assistant_message, function_call

from example_project.shop.frameworks import INSTRUCTIONS
from example_project.shop.model import Message, ask_model, tool_result


def make_agent(tools: list[Any], model: str) -> Agent[Any]:
    """Return the agent; without a model's name it asks the scripted one.

    The SDK names OpenAI's models without a provider, unlike the other frameworks.
    """
    return Agent(
        name="support",
        instructions=INSTRUCTIONS,
        model=model.removeprefix("openai:") or Scripted(),
        tools=tools,
    )


class Scripted(Model):
    """The scripted model as one of the SDK's."""

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],  # noqa: A002  the SDK's word
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        """Reply in the SDK's own items."""
        said = ask_model(_plain(input))
        output = [assistant_message(said["content"])]
        output += [
            function_call(call["name"], call["args"], call_id=call["id"])
            for call in said["tool_calls"]
        ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: a turn's replies are recorded as a whole.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError


def _plain(given: str | list[Any]) -> list[Message]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    names = {one["call_id"]: one["name"] for one in given if _is(one, "function_call")}
    said: list[Message] = []
    for one in given:
        if one.get("role") == "user":
            said.append({"role": "user", "content": str(one["content"])})
        elif _is(one, "function_call_output"):
            said.append(tool_result(names[one["call_id"]], str(one["output"])))
    return said


def _is(item: Any, kind: str) -> bool:
    return bool(item.get("type") == kind)

"""Agents of the OpenAI Agents SDK for tests. Imports the SDK: import it inside of tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from agents import Agent, Model, ModelResponse, Usage
from agents.testing import assistant_message, function_call

from tests.support.world import world

Play = Callable[[int, list[tuple[str, str]], list[Any]], dict[str, Any]]


class Playing(Model):
    """Replies by what the conversation holds so far, whichever process asks."""

    def __init__(self, play: Play) -> None:
        self.play = play

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002  the SDK names it
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        number = sum(item.get("type") == "message" for item in input)
        told = [
            (item["call_id"], item["output"])
            for item in input
            if item.get("type") == "function_call_output"
        ]
        reply = self.play(number, told, input)
        calls = [
            function_call(
                one["name"], one["args"], call_id=one["id"], item_id=f"fc_{number}_{n}"
            )
            for n, one in enumerate(reply["tool_calls"])
        ]
        return ModelResponse(
            output=[
                assistant_message(reply["text"], item_id=f"msg_{number}"),
                *calls,
            ],
            usage=Usage(requests=1, input_tokens=3, output_tokens=4, total_tokens=7),
            response_id=f"resp_{number}",
        )

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def play_input(
    number: int, told: list[tuple[str, str]], items: list[Any]
) -> dict[str, Any]:
    """Play the script that the turn's input is; end with all that the model was told."""
    world.model_calls.append(f"reply {number}")
    script = json.loads(items[0]["content"])
    if number == len(script):
        return {"text": json.dumps([text for _id, text in told]), "tool_calls": []}
    return {"text": f"reason {number}", "tool_calls": script[number]}


def playing(tools: Sequence[Any], *, name: str = "refunds") -> Agent[Any]:
    """Make an agent that plays its input."""
    return Agent(name=name, model=Playing(play_input), tools=list(tools))

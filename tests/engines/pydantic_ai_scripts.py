"""Agents of Pydantic AI that ask for whatever the turn's input says.

Imported without the framework, which only the functions in here need.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hitl_approvals import start_turn
from hitl_approvals.models import AgentTurn
from hitl_approvals.registry import AgentDefinition, Tool, registry
from tests.support import agents, turns
from tests.support.world import world

TOOLS = [
    agents.pay,
    agents.mail,
    agents.note,
    agents.read,
    agents.transfer,
    agents.ship,
    agents.judged,
]
NAME = "pydantic"


def call(id_: str, tool: str, /, **args: Any) -> dict[str, Any]:
    return {"id": id_, "name": tool, "args": args}


PAY = call("c1", "pay", order="A1", amount="5")


def define(
    name: str = NAME,
    target: Callable[[Any], Any] | None = None,
    tools: list[Tool[Any, Any]] | None = None,
) -> AgentDefinition:
    """Return the definition of an agent of this kind; the scripted one by default."""
    return AgentDefinition(
        name=name,
        target=target or scripted,
        kind="pydantic_ai",
        tools={one.name: one for one in (TOOLS if tools is None else tools)},
    )


def register(definition: AgentDefinition | None = None) -> None:
    """Register an agent for good; in a process of its own."""
    made = definition or define()
    registry.agents[made.name] = made


def scripted(tools: Any, **options: Any) -> Any:
    """Return an agent that plays its prompt: a list of replies, each a list of calls."""
    from pydantic_ai import Agent

    return Agent(model(), tools=tools, **options)


def model(answer: Callable[[list[Any], Any], Any] | None = None) -> Any:
    from pydantic_ai.models.function import FunctionModel

    return FunctionModel(answer or reply)


def reply(messages: list[Any], info: Any) -> Any:
    """Stand for the model; the world counts how often it is really asked."""
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

    script = json.loads(messages[0].parts[-1].content)
    number = sum(isinstance(one, ModelResponse) for one in messages)
    world.model_calls.append(f"reply {number}")
    if number == len(script):
        return ModelResponse(parts=[TextPart(json.dumps(told(messages)))])
    calls = [
        ToolCallPart(one["name"], one["args"], one["id"]) for one in script[number]
    ]
    return ModelResponse(parts=[TextPart(f"reason {number}"), *calls])


def told(messages: list[Any]) -> list[list[str]]:
    """Return id, outcome and text of all that the model was told of its calls."""
    from pydantic_ai.messages import ModelRequest, ToolReturnPart

    return [
        [part.tool_call_id, part.outcome, part.content]
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


def read_output(turn: Any) -> dict[str, tuple[str, str]]:
    """Return outcome and text by call, as the model was told them at the end."""
    return {id_: (outcome, text) for id_, outcome, text in json.loads(turn.output)}


def fails(turn: Any, *texts: str) -> None:
    """Check that a turn stopped visibly, with these texts, and ran nothing."""
    assert turn.status == "needs_attention"
    for text in texts:
        assert text in turn.last_error + turn.error
    assert world.effects == []


def saying(answer: Callable[[list[Any]], Any], **options: Any) -> Callable[[Any], Any]:
    """Return a factory whose model pays once and then answers what a function says."""

    def reply(messages: list[Any], info: Any) -> Any:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("pay", PAY["args"], "c1")])
        said = answer(messages)
        if isinstance(said, str):
            return ModelResponse(parts=[TextPart(said)])
        return ModelResponse(
            parts=[ToolCallPart(info.output_tools[0].name, said, "o1")]
        )

    def factory(tools: Any) -> Any:
        from pydantic_ai import Agent

        return Agent(model(reply), tools=tools, **options)

    return factory


def played(name: str, given: Any = "go", **options: Any) -> AgentTurn:
    """Start a turn, approve all that it asks for, and go on."""
    turn = start_turn(name, given, run=True, **options)
    turns.decide_and_resume(turn)
    return turn

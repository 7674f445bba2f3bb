"""Pydantic AI: its agent says what to call, our gate runs it and our rows keep the turn."""

from __future__ import annotations

from threading import Lock
from typing import Any

from hitl_approvals.agents.base import Agent
from hitl_approvals.agents.capabilities import Capabilities
from hitl_approvals.agents.extras import imported
from hitl_approvals.registry import AgentDefinition

CAPABILITIES = Capabilities(
    partial_resume=False,
    native_edit=True,
    reject_text=True,
    questions=False,
    replays_replies=True,
    durability="package",
    state_format="json",
)

GATED, UNGATED = "hitl_approvals_gated", "hitl_approvals_ungated"
"""Keys in the metadata of a tool's definition: a gate stands before its body, or none has
to. Two, for a toolset adds to what its tools say of themselves."""

_idle: dict[str, list[Any]] = {}
_lending = Lock()


def make(definition: AgentDefinition) -> Agent:
    """Return an agent of a definition that performs no other turn at the moment.

    Turns that run beside each other, in threads, each get their own: an agent's clients
    keep connections that belong to one event loop. Turns that follow each other share.

    Raises:
        MissingExtra: Pydantic AI is not installed.
        HitlConfigurationError: The factory returns something else than an agent.
    """
    imported("pydantic_ai", extra="pydantic-ai")
    # Needs the framework, so it is imported only now.
    from hitl_approvals.agents.pydantic_ai.loop import PydanticAgent

    with _lending:
        idle = _idle.setdefault(definition.name, [])
        while idle:
            known: PydanticAgent = idle.pop()
            # Of an older definition of that name: forget it.
            if known.definition is definition:
                return known
    return PydanticAgent(definition)


def give_back(agent: Any) -> None:
    """Let the next turn of its definition have an agent, whose own turn is over."""
    with _lending:
        _idle.setdefault(agent.definition.name, []).append(agent)


def ungated(one: Any) -> Any:
    """Let an agent have a function, a `Tool` or a toolset that is none of this package's.

    Or a tool that the model's provider runs (`WebSearchTool()` and so on), or a function
    that takes its output, in the framework's own wrapping (`ToolOutput(...)` and so on).
    Nobody is asked before it is used, it is on no record, and after a crash it is used
    again. Without this, an agent that has one is not run at all.
    """
    from pydantic_ai import Tool
    from pydantic_ai.native_tools import AbstractNativeTool
    from pydantic_ai.toolsets import AbstractToolset

    # Needs the framework as well.
    from hitl_approvals.agents.pydantic_ai.outputs import WRAPPERS

    if isinstance(one, (AbstractNativeTool, *WRAPPERS)):
        setattr(one, UNGATED, True)
        return one
    if isinstance(one, AbstractToolset):
        return one.with_metadata(**{UNGATED: True})
    made: Any = one if isinstance(one, Tool) else Tool(one)
    made.metadata = {**(made.metadata or {}), UNGATED: True}
    return made

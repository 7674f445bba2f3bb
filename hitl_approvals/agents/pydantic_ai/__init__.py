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

MARK, GATED, UNGATED = "hitl_approvals", "gated", "ungated"
"""Key and values in the metadata of a tool's definition: what stands before its body."""

_made: dict[str, tuple[AgentDefinition, Agent]] = {}
_making = Lock()


def make(definition: AgentDefinition) -> Agent:
    """Return the agent of a definition; its factory is called once in a process.

    Raises:
        MissingExtra: Pydantic AI is not installed.
        HitlConfigurationError: The factory returns something else than an agent.
    """
    imported("pydantic_ai", extra="pydantic-ai")
    # Needs the framework, so it is imported only now.
    from hitl_approvals.agents.pydantic_ai.loop import PydanticAgent

    with _making:
        known = _made.get(definition.name)
        if known is not None and known[0] is definition:
            return known[1]
        agent = PydanticAgent(definition)
        _made[definition.name] = (definition, agent)
        return agent


def ungated(one: Any) -> Any:
    """Let an agent have a function, a `Tool` or a toolset that is none of this package's.

    Nobody is asked before it is used, it is on no record, and after a crash it is used
    again. Without this, an agent that has one is not run at all.
    """
    from pydantic_ai import Tool
    from pydantic_ai.toolsets import AbstractToolset

    if isinstance(one, AbstractToolset):
        return one.with_metadata(**{MARK: UNGATED})
    made: Any = one if isinstance(one, Tool) else Tool(one)
    made.metadata = {**(made.metadata or {}), MARK: UNGATED}
    return made

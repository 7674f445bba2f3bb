"""Agents of the OpenAI Agents SDK: our worker runs them, their `RunState` waits in our row.

Imports nothing of the SDK until an agent of this kind is run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar

from hitl_approvals.agents.capabilities import Capabilities
from hitl_approvals.agents.extras import imported
from hitl_approvals.agents.framework import FrameworkAgent
from hitl_approvals.registry import AgentDefinition

T = TypeVar("T")

CAPABILITIES = Capabilities(
    partial_resume=True,
    native_edit=False,
    reject_text=True,
    questions=False,
    replays_replies=True,
    durability="package",
    state_format="json",
)
UNGATED = "_hitl_ungated"
"""Set on what a site lets its agents have although no gate stands before it."""


def make(definition: AgentDefinition) -> FrameworkAgent:
    """Return the agent of a definition, whose target makes the SDK's own.

    Raises:
        MissingExtra: The SDK is not installed.
        RunDiverged: The agent cannot be run as it is built; the text says why.
    """
    # A module below the top one: a site's own package may be called `agents` as well.
    imported("agents.run_state", extra="openai-agents")
    adapter = import_module("hitl_approvals.agents.openai_agents.adapter")
    made: FrameworkAgent = adapter.of(definition)
    return made


def ungated(one: T) -> T:
    """Let an agent have a tool or an MCP server that is none of this package's.

    Nobody is asked before such a tool is used, it is on no record, and after a crash it is
    used again. Without this, an agent that has one is not run at all.

    Around an agent it lets pass the prompt that the vendor keeps for it. The agent's tools
    are looked at all the same.
    """
    setattr(one, UNGATED, True)
    return one

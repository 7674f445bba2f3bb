"""The LangGraph agent: a graph of LangGraph or LangChain whose tools go through the gate."""

from __future__ import annotations

from importlib import import_module

from hitl_approvals.agents.base import Agent
from hitl_approvals.agents.capabilities import Capabilities
from hitl_approvals.agents.extras import imported
from hitl_approvals.registry import AgentDefinition

CAPABILITIES = Capabilities(
    partial_resume=True,
    native_edit=True,
    reject_text=True,
    questions=True,
    replays_replies=True,
    durability="framework",
    state_format="external",
)


def make(definition: AgentDefinition) -> Agent:
    """Return the agent that runs this definition's graph.

    Raises:
        MissingExtra: LangGraph is not installed; the message names the pip line.
    """
    imported("langgraph.graph", extra="langgraph")
    module = import_module("hitl_approvals.agents.langgraph.adapter")
    made: Agent = module.LangGraphAgent(definition)
    return made

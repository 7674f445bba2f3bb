"""Builds the graph of an agent, once in a process, with tools that are gated."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.apps import apps
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from hitl_approvals.agents.langgraph.tools import as_langchain
from hitl_approvals.exceptions import HitlConfigurationError
from hitl_approvals.registry import AgentDefinition

CHECKPOINTS = "hitl_approvals.checkpoints"
_built: dict[str, tuple[AgentDefinition, Any]] = {}


def graph_of(definition: AgentDefinition) -> Any:
    """Return the compiled graph of an agent; its factory is called once in a process.

    Raises:
        HitlConfigurationError: It makes no graph, or one that cannot be kept.
    """
    known = _built.get(definition.name)
    if known is None or known[0] is not definition:
        known = definition, _build(definition)
        _built[definition.name] = known
    return known[1]


def _build(definition: AgentDefinition) -> Any:
    tools = [as_langchain(one) for one in definition.tools.values()]
    graph = definition.target(tools)
    if isinstance(graph, StateGraph):
        graph = graph.compile()
    if not isinstance(graph, Pregel):
        raise HitlConfigurationError(
            f"Agent `{definition.name}`: its function returned a "
            f"{type(graph).__name__}. Return what `create_agent(...)` makes, or a "
            "`StateGraph`."
        )
    if graph.interrupt_before_nodes or graph.interrupt_after_nodes:
        raise HitlConfigurationError(
            f"Agent `{definition.name}`: `interrupt_before` and `interrupt_after` pause "
            "without a question that a person could answer. Call `interrupt(...)` in the "
            "node, or gate a tool."
        )
    if graph.checkpointer is None or isinstance(graph.checkpointer, bool):
        return graph.copy({"checkpointer": _own_checkpointer(definition.name)})
    return graph


def _own_checkpointer(name: str) -> Any:
    if not apps.is_installed(CHECKPOINTS):
        raise HitlConfigurationError(
            f"Agent `{name}`: its graph has no checkpointer, so nothing would outlive a "
            f'pause. Add "{CHECKPOINTS}" to INSTALLED_APPS and migrate, or compile the '
            "graph with a checkpointer of your own."
        )
    return import_module(CHECKPOINTS).DjangoCheckpointSaver()

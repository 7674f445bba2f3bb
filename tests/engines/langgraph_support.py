"""Declares agents of LangGraph for one test. Imports LangGraph when a graph is named."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hitl_approvals import start_turn
from hitl_approvals.models import AgentTurn
from hitl_approvals.registry import AgentDefinition, registry
from tests.support import agents


class _Later:
    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


graphs = _Later("tests.engines.langgraph_graphs")
"""The module of graphs. Collecting a test does not import it."""
chain = _Later("tests.engines.langchain_agents")
"""What needs LangChain beside LangGraph."""


def declare(factory: Any, *tools: Any, name: str = "refunds") -> str:
    """Register the factory of a graph until the test ends; return the agent's name."""
    registry.agents[name] = AgentDefinition(
        name=name,
        target=factory,
        kind="langgraph",
        tools={one.name: one for one in tools or agents.TOOLS},
    )
    return name


def begin(name: str, given: Any = "go", **options: Any) -> AgentTurn:
    """Start a turn here and run it to its first pause or its end."""
    turn = start_turn(name, given, run=True, **options)
    turn.refresh_from_db()
    return turn


def call(id_: str, name: str, **args: Any) -> dict[str, Any]:
    """Write a call as a chat model does."""
    return {"id": id_, "name": name, "args": args}


PAY = call("c1", "pay", order="A1", amount="5")
MAIL = call("c2", "mail", to="kim")
NOTE = call("c3", "note", text="hello")

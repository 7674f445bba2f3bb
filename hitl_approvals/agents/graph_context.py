"""What a node of a graph is handed. Importable before the apps are ready."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hitl_approvals.agents.async_turn import AsyncTurn
from hitl_approvals.agents.turn import Turn
from hitl_approvals.awaiting import awaited
from hitl_approvals.frozen import freeze
from hitl_approvals.graphs import Node
from hitl_approvals.registry import AgentDefinition

if TYPE_CHECKING:
    from hitl_approvals.services.run import Run


class GraphContext(Turn):
    """A turn as one node sees it: the same verbs, and what the nodes before returned.

    Steps, calls, effects and questions belong to the node: none of them meets those of
    another node, and within the node the n-th is the n-th again after every restart.
    """

    def __init__(
        self, run: Run, definition: AgentDefinition, *, outputs: Mapping[str, Any]
    ) -> None:
        super().__init__(run, definition)
        self._state: Mapping[str, Any] = freeze(outputs)

    @property
    def node(self) -> str:
        """Name of the node."""
        return self._run.node or ""

    @property
    def state(self) -> Mapping[str, Any]:
        """The outputs of the nodes that are finished, by name. Cannot be changed."""
        return self._state


class AsyncGraphContext(AsyncTurn):
    """What an async node is handed: the same verbs, awaited."""

    _turn: GraphContext

    def __init__(self, context: Any) -> None:
        super().__init__(context)

    @property
    def node(self) -> str:
        """Name of the node."""
        return self._turn.node

    @property
    def state(self) -> Mapping[str, Any]:
        """The outputs of the nodes that are finished, by name. Cannot be changed."""
        return self._turn.state


def call_node(node: Node, given: Any, context: Any) -> Any:
    """Call a node's function with as much as it takes, and await it if it is async."""
    if not node.takes_context:
        return awaited(node.function, given)
    if node.is_async:
        return awaited(node.function, given, AsyncGraphContext(context))
    return awaited(node.function, given, context)

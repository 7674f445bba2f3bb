"""The graph agent: nodes in their order, each recorded before the next one begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from hitl_approvals.agents.base import Completed, Suspended
from hitl_approvals.agents.capabilities import Capabilities
from hitl_approvals.agents.graph_context import GraphContext, call_node
from hitl_approvals.agents.guarding import guarded
from hitl_approvals.agents.recording import copied, plain
from hitl_approvals.enums import StepKind
from hitl_approvals.exceptions import (
    HitlConfigurationError,
    InterruptSuspended,
    RunDiverged,
)
from hitl_approvals.graphs import Graph, Node
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import AgentDefinition
from hitl_approvals.services import journal
from hitl_approvals.services.run import Run

STATE_VERSION = 1
CAPABILITIES = Capabilities(
    partial_resume=False,
    native_edit=True,
    reject_text=True,
    questions=True,
    replays_replies=True,
    durability="package",
    state_format="journal",
)


class GraphAgent:
    """Runs the nodes that are not finished. A node begins at its top, every time."""

    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, definition: AgentDefinition, graph: Graph) -> None:
        self._definition = definition
        self._graph = graph

    def start(self, run: Run, input: Any) -> Completed | Suspended:  # noqa: A002
        """Perform a turn from its beginning."""
        return self._perform(run)

    def resume(
        self, run: Run, state: Any, decisions: Sequence[PendingInterrupt]
    ) -> Completed | Suspended:
        """Go on at the first node that is not finished."""
        return self._perform(run)

    def _perform(self, run: Run) -> Completed | Suspended:
        outputs = self._outputs(run)
        given = next(reversed(outputs.values())) if outputs else run.turn.input
        try:
            for node in self._graph.nodes[len(outputs) :]:
                given = self._run_node(run, node, given, outputs)
                outputs[node.name] = given
        except InterruptSuspended:
            return Suspended()
        finally:
            run.node = None
        return Completed(given)

    def _outputs(self, run: Run) -> dict[str, Any]:
        """Return what the finished nodes returned, after comparing the graph with theirs.

        Raises:
            RunDiverged: A node was renamed, removed or moved since.
        """
        recorded = _recorded_nodes(run.turn.state) or self._graph.names
        outputs = {}
        for name in recorded:
            step = run.steps.get((run.key("node", name), 1))
            if step is None:
                break
            outputs[name] = step.result
        self._graph.require_same(recorded, len(outputs))
        if _recorded_nodes(run.turn.state) != self._graph.names:
            state = {"version": STATE_VERSION, "nodes": self._graph.names}
            journal.write(run, state=state)
            run.turn.state = state
        return outputs

    def _run_node(
        self, run: Run, node: Node, given: Any, outputs: dict[str, Any]
    ) -> Any:
        run.node = node.name
        run.check_lease()
        context = GraphContext(run, self._definition, outputs=outputs)
        made = guarded(context, lambda: call_node(node, copied(given), context))
        run.node = None
        result = plain(made, f"Node `{node.name}`", "Return JSON.")
        key = run.key("node", node.name)
        run.journal(key, StepKind.NODE, node.name, result=result)
        # Written before the next node begins: a finished node never runs again.
        journal.write(run)
        return result


def _recorded_nodes(state: Any) -> list[str] | None:
    """Return the names of the nodes when the turn last ran; None if it never did.

    Raises:
        RunDiverged: Another version of this package wrote the state.
    """
    if state is None:
        return None
    if not isinstance(state, dict) or state.get("version") != STATE_VERSION:
        raise RunDiverged(
            f"The state of this turn was written by another version: {state!r}."
        )
    return list(state["nodes"])


def make(definition: AgentDefinition) -> GraphAgent:
    """Return the agent that runs this definition's graph.

    Raises:
        HitlConfigurationError: What is registered is no graph.
    """
    if not isinstance(definition.target, Graph):
        raise HitlConfigurationError(
            f"Agent `{definition.name}` has kind 'graph' and is no graph; declare it "
            f"as DurableExecutor(nodes=[...], name={definition.name!r})."
        )
    return GraphAgent(definition, definition.target)

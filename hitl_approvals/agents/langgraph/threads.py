"""Where in LangGraph's threads a turn stands: begun, under way, or yet to begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hitl_approvals.agents.framework import FrameworkTurn

TURN, RESTARTS = "hitl_turn", "hitl_restarts"
"""What each checkpoint says of the attempt that wrote it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the run of a turn begins."""

    config: dict[str, Any]
    """What the graph is first run with."""
    state: Any = None
    """What this attempt at the turn has come to; None if it has not begun."""


class Thread:
    """The thread of a conversation. All its turns write into it, one after the other.

    A turn that was restarted or abandoned leaves checkpoints of its own at the end. The
    next one begins where the conversation stood before it.
    """

    def __init__(self, agent: str, turn: FrameworkTurn) -> None:
        self.id = f"{agent}:{turn.thread_id}"
        self._turn = str(turn.id)
        self._attempt = (self._turn, turn.restarts)

    @property
    def config(self) -> dict[str, Any]:
        """What the graph is run with, from the end of the thread."""
        turn, restarts = self._attempt
        return {
            "configurable": {"thread_id": self.id},
            "metadata": {TURN: turn, RESTARTS: restarts},
        }

    async def place(self, graph: Any, saver: Any) -> Place:
        """Return where this attempt at the turn stands."""
        state = await graph.aget_state({"configurable": {"thread_id": self.id}})
        if checkpoint_id(state) is None:
            return Place(self.config)
        written = state.metadata or {}
        if (written.get(TURN), written.get(RESTARTS)) == self._attempt:
            return Place(self.config, state)
        if written.get(TURN) != self._turn and not state.next:
            return Place(self.config)
        return Place(await self._before(graph, saver))

    async def _before(self, graph: Any, saver: Any) -> dict[str, Any]:
        """Return where the conversation stood before turns that came to nothing."""
        config = self.config
        history = graph.aget_state_history({"configurable": {"thread_id": self.id}})
        async for state in history:
            if (state.metadata or {}).get(TURN) != self._turn and not state.next:
                config["configurable"]["checkpoint_id"] = checkpoint_id(state)
                return config
        # Nothing but what was abandoned: the conversation begins here.
        await saver.adelete_thread(self.id)
        return config


def checkpoint_id(state: Any) -> str | None:
    """Return the id of the checkpoint that a state was read from; None if there is none."""
    found: str | None = state.config["configurable"].get("checkpoint_id")
    return found

"""Checkpoints as a view of turns and steps: the engine writes them, this reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from hitl_approvals import canonical
from hitl_approvals.exceptions import CheckpointConflict, TransitionNotAllowed
from hitl_approvals.stores.checkpoints import NODE, PAUSE, Checkpoint, Checkpoints

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from hitl_approvals.models import AgentTurn, PendingInterrupt, TurnStep


class DjangoCheckpointStore:
    """Shows the threads of graphs as checkpoints: every pause, every finished node.

    A checkpoint's id is that of its interrupt or step, so it leads back to the row.

    Args:
        agent: Show the threads of this graph only.
    """

    def __init__(self, agent: str | None = None) -> None:
        self._agent = agent

    def save(self, checkpoint: Checkpoint) -> None:
        """Refuse: an engine's record of what happened is not written by hand.

        Raises:
            CheckpointConflict: Always.
        """
        raise CheckpointConflict(
            "The engine writes its own checkpoints, with every step and every answer; "
            "nothing was saved. Run or fork the thread instead.",
            checkpoint_id=checkpoint.id,
        )

    def load(self, thread_id: str) -> Checkpoint | None:
        """Return the newest checkpoint of a thread, or None."""
        found = self.list(thread_id)
        return found[-1] if found else None

    def load_by_id(self, checkpoint_id: str) -> Checkpoint | None:
        """Return a checkpoint, or None."""
        turn = self._turn_of(checkpoint_id)
        if turn is None:
            return None
        found = self.list(turn.thread_id)
        return next((one for one in found if one.id == checkpoint_id), None)

    def list(self, thread_id: str) -> Checkpoints:
        """Return the checkpoints of a thread, oldest first, over all of its turns."""
        found = [one for turn in self._turns(thread_id) for one in _of_turn(turn)]
        return [
            one.with_changes(position=place) for place, one in enumerate(found, start=1)
        ]

    def delete(self, thread_id: str) -> None:
        """Cancel the open turns of a thread. What happened stays on record."""
        from hitl_approvals.enums import OPEN_TURN, Door
        from hitl_approvals.services import cancel

        for turn in self._turns(thread_id).filter(status__in=OPEN_TURN):
            # It may have ended meanwhile, which is as good.
            with suppress(TransitionNotAllowed):
                cancel(turn.pk, by=None, via=Door.PYTHON, reason="thread deleted")

    def _turns(self, thread_id: str) -> QuerySet[AgentTurn]:
        from hitl_approvals.services import rows

        key = canonical.key_digest("thread", thread_id)
        found = rows.turns().filter(thread_key=key).order_by("created_at", "pk")
        return found if self._agent is None else found.filter(agent=self._agent)

    def _turn_of(self, checkpoint_id: str) -> AgentTurn | None:
        from hitl_approvals.services import rows

        try:
            known_id = UUID(checkpoint_id)
        except ValueError:
            return None
        holder: PendingInterrupt | TurnStep | None = (
            rows.interrupts().select_related("turn").filter(pk=known_id).first()
            or rows.steps().select_related("turn").filter(pk=known_id).first()
        )
        return None if holder is None else holder.turn


def _of_turn(turn: AgentTurn) -> Iterator[Checkpoint]:
    """Yield a turn's checkpoints: of each node its pauses, then its end."""
    from hitl_approvals.enums import StepKind
    from hitl_approvals.services import rows

    pauses: dict[str, list[PendingInterrupt]] = {}
    for row in rows.interrupts().filter(turn=turn.pk).order_by("after_step", "pk"):
        asked_in = (row.context or {}).get("metadata", {})
        if "node" in asked_in and asked_in.get("restarts", 0) == turn.restarts:
            pauses.setdefault(asked_in["node"], []).append(row)
    of_nodes = rows.steps().filter(turn=turn.pk, kind=StepKind.NODE)
    ended = {step.key: step for step in of_nodes}
    history: list[dict[str, Any]] = []
    given = turn.input
    if not pauses and not ended:
        return  # Not a graph's; other agents keep a state of their own kind.
    names = turn.state["nodes"] if isinstance(turn.state, dict) else list(pauses)
    for name in names:
        before = {
            "thread_id": turn.thread_id,
            "node": name,
            "state": {one["node"]: one["output"] for one in history},
            "history": [*history],
            "pending_input": given,
        }
        for row in pauses.get(name, ()):
            yield Checkpoint(
                **before,
                id=str(row.pk),
                kind=PAUSE,
                interrupt_payload=payload_of(row),
                created_at=row.requested_at,
            )
        step = ended.get(_node_key(turn, name))
        if step is None:
            return
        given = step.result
        history.append({"node": name, "output": given})
        yield Checkpoint(
            id=str(step.pk),
            thread_id=turn.thread_id,
            node=name,
            state={one["node"]: one["output"] for one in history},
            history=[*history],
            pending_input=given,
            kind=NODE,
            created_at=step.started_at,
        )


def payload_of(row: PendingInterrupt) -> Any:
    """Return what a person is asked: the question, or the call."""
    from hitl_approvals.enums import InterruptKind

    if row.kind == InterruptKind.QUESTION:
        return row.payload
    return {"tool": row.tool_name, "args": canonical.stored(row.args_text)}


def _node_key(turn: AgentTurn, name: str) -> str:
    from hitl_approvals.services.run import turn_key

    return turn_key(turn, "node", name)

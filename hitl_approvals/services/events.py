"""Audit events: built here, chained by hash, inserted with the transition they tell of."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hitl_approvals.enums import Door
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from hitl_approvals.models.events import event_hash
from hitl_approvals.types import ActorInfo, Person

SYSTEM = ActorInfo(user_id="", label="system", via=Door.SYSTEM)


def actor_of(user: Person | None, via: str) -> ActorInfo:
    """Return the text that an event keeps of a person; `None` is trusted code."""
    if user is None:
        return ActorInfo(user_id="", label="system", via=via)
    return ActorInfo(user_id=str(user.pk), label=user.get_username()[:255], via=via)


def interrupt_event(
    row: PendingInterrupt,
    type_: str,
    *,
    actor: ActorInfo,
    at: datetime,
    status: str,
    decision: str | None = None,
    generation: int | None = None,
    revision: int | None = None,
    digest_shown: str = "",
    digest_run: str = "",
    execute_by: datetime | None = None,
    detail: Any = None,
) -> InterruptEvent:
    """Build the next event of an interrupt's chain from the row as it was read."""
    return _chained(
        row,
        InterruptEvent(
            subject_id=row.pk,
            turn_id=row.turn_id,
            interrupt_id=row.pk,
            type=type_,
            at=at,
            actor_id=actor.user_id,
            actor=actor.label,
            via=actor.via,
            status=status,
            decision=(row.decision if decision is None else decision) or "",
            generation=row.generation if generation is None else generation,
            revision=row.revision if revision is None else revision,
            digest_proposed=row.requested_digest,
            digest_shown=digest_shown,
            digest_run=digest_run,
            execute_by=execute_by,
            detail=detail,
        ),
    )


def turn_event(
    turn: AgentTurn,
    type_: str,
    *,
    actor: ActorInfo,
    at: datetime,
    status: str,
    detail: Any = None,
) -> InterruptEvent:
    """Build the next event of a turn's own chain from the row as it was read."""
    return _chained(
        turn,
        InterruptEvent(
            subject_id=turn.pk,
            turn_id=turn.pk,
            type=type_,
            at=at,
            actor_id=actor.user_id,
            actor=actor.label,
            via=actor.via,
            status=status,
            detail=detail,
        ),
    )


def _chained(
    row: PendingInterrupt | AgentTurn, event: InterruptEvent
) -> InterruptEvent:
    event.sequence = row.events_count
    event.previous_hash = row.events_head
    event.hash = event_hash(event)
    return event


def head(event: InterruptEvent) -> dict[str, Any]:
    """Return the columns that move the chain's head in the transition's own UPDATE."""
    return {"events_head": event.hash, "events_count": event.sequence + 1}

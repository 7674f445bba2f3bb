"""The read side: what lists and pages show. Writes nothing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from hitl_approvals import permissions
from hitl_approvals.enums import EventType, InterruptStatus
from hitl_approvals.exceptions import InterruptNotFound, TurnNotFound
from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from hitl_approvals.registry import Tool, registry
from hitl_approvals.types import Person

OPEN = (InterruptStatus.PENDING, InterruptStatus.IN_DOUBT)
"""What waits for a person."""


def open_interrupts(user: Person) -> QuerySet[PendingInterrupt]:
    """Return what waits for a person, as far as this one may see it."""
    return permissions.visible_to(user).filter(status__in=OPEN)


def interrupt_get(interrupt_id: UUID | str, user: Person) -> PendingInterrupt:
    """Return one interrupt with its turn and queue.

    Raises:
        InterruptNotFound: No such row, or this person may not see it.
    """
    found = permissions.visible_to(user).select_related("turn", "client", "queue")
    try:
        row = found.filter(pk=interrupt_id).first()
    except (ValidationError, ValueError):
        row = None
    if row is None:
        raise InterruptNotFound
    return row


def turn_get(turn_id: UUID | str, user: Person) -> AgentTurn:
    """Return one turn.

    Raises:
        TurnNotFound: No such turn, or this person may not see it.
    """
    try:
        turn = permissions.turns_visible_to(user).filter(pk=turn_id).first()
    except (ValidationError, ValueError):
        turn = None
    if turn is None:
        raise TurnNotFound
    return turn


def tool_of(row: PendingInterrupt) -> Tool[Any, Any] | None:
    """Return the registered tool that a call is of, if this process knows it.

    A remote agent's call is of a tool of its own, whatever tool here has the same name.
    """
    return None if row.turn_id is None else registry.tools.get(row.tool_name)


def forks_of(turn: AgentTurn, user: Person) -> QuerySet[AgentTurn]:
    """Return the turns that were forked from one and that a person may see, newest first."""
    return permissions.turns_visible_to(user).filter(parent=turn.pk).order_by("-pk")


def left_out_of(turn: AgentTurn) -> list[dict[str, Any]]:
    """Return the calls of unknown fate that a fork did not take over from its origin.

    Each is `step`, `name`, `status` and `position` as they were in the origin.
    """
    if turn.parent_id is None:
        return []
    first = InterruptEvent.objects.filter(
        subject_id=turn.pk, type=EventType.TURN_BEGUN_AS_FORK
    ).first()
    found: list[dict[str, Any]] = [] if first is None else first.detail["left_out"]
    return found


def siblings_of(interrupt: PendingInterrupt) -> QuerySet[PendingInterrupt]:
    """Return the other interrupts of the same turn, in the model's order."""
    if interrupt.turn_id is None:
        return PendingInterrupt.objects.none()
    return (
        PendingInterrupt.objects.filter(turn=interrupt.turn_id)
        .exclude(pk=interrupt.pk)
        .order_by("position", "pk")
    )


def steps_of(turn_id: UUID) -> QuerySet[TurnStep]:
    """Return the journal of a turn in its order."""
    return TurnStep.objects.filter(turn=turn_id).order_by("position", "generation")


def events_of(interrupt: PendingInterrupt) -> QuerySet[InterruptEvent]:
    """Return the audit events of an interrupt, oldest first."""
    return InterruptEvent.objects.filter(subject_id=interrupt.pk).order_by("sequence")


def events_of_turn(turn_id: UUID) -> QuerySet[InterruptEvent]:
    """Return every event of a turn and of its interrupts, oldest first."""
    return InterruptEvent.objects.filter(
        Q(turn_id=turn_id) | Q(subject_id=turn_id)
    ).order_by("at", "subject_id", "sequence")


def next_open(user: Person, after: PendingInterrupt) -> PendingInterrupt | None:
    """Return the next interrupt that this person could decide, oldest first.

    Goes round: after the newest comes the oldest, so that skipping reaches them all.
    """
    waiting = _waiting_for(user, after).order_by("requested_at", "pk")
    later = Q(requested_at__gt=after.requested_at) | Q(
        requested_at=after.requested_at, pk__gt=after.pk
    )
    # The plain bound is what lets the database walk its index from there.
    later &= Q(requested_at__gte=after.requested_at)
    return waiting.filter(later).first() or waiting.first()


def previous_open(user: Person, before: PendingInterrupt) -> PendingInterrupt | None:
    """Return the interrupt that `next_open` would come from."""
    waiting = _waiting_for(user, before).order_by("-requested_at", "-pk")
    earlier = Q(requested_at__lt=before.requested_at) | Q(
        requested_at=before.requested_at, pk__lt=before.pk
    )
    earlier &= Q(requested_at__lte=before.requested_at)
    return waiting.filter(earlier).first() or waiting.first()


def _waiting_for(user: Person, beside: PendingInterrupt) -> QuerySet[PendingInterrupt]:
    return (
        permissions.decidable_by(user)
        .filter(status=InterruptStatus.PENDING)
        .exclude(pk=beside.pk)
    )

"""The read side: what lists and pages show. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from hitl_approvals import permissions
from hitl_approvals.enums import EventType, InterruptStatus
from hitl_approvals.exceptions import InterruptNotFound, TurnNotFound
from hitl_approvals.models import (
    AgentTurn,
    DbNow,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from hitl_approvals.registry import Tool, registry
from hitl_approvals.types import Person

OPEN = (InterruptStatus.PENDING, InterruptStatus.IN_DOUBT)
"""What waits for a person."""
SHOWN_WITH = ("turn", "client", "queue", "assignee")
"""What is read with an interrupt to show it."""


def open_interrupts(user: Person) -> QuerySet[PendingInterrupt]:
    """Return what waits for a person, as far as this one may see it."""
    return permissions.visible_to(user).filter(status__in=OPEN)


def interrupt_get(
    interrupt_id: UUID | str, user: Person, *, using: str | None = None
) -> PendingInterrupt:
    """Return one interrupt with its turn and queue.

    Args:
        interrupt_id: Any text; what is no id is nobody's.
        user: Who asks.
        using: The database to read from; None is where the site reads.

    Raises:
        InterruptNotFound: No such row, or this person may not see it.
    """
    found = permissions.visible_to(user).select_related(*SHOWN_WITH).using(using)
    try:
        row = found.filter(pk=interrupt_id).first()
    except (ValidationError, ValueError):
        row = None
    if row is None:
        raise InterruptNotFound
    return row


def turn_get(
    turn_id: UUID | str, user: Person, *, using: str | None = None
) -> AgentTurn:
    """Return one turn.

    Args:
        turn_id: Any text; what is no id is nobody's.
        user: Who asks.
        using: The database to read from; None is where the site reads.

    Raises:
        TurnNotFound: No such turn, or this person may not see it.
    """
    found = permissions.turns_visible_to(user).using(using)
    try:
        turn = found.filter(pk=turn_id).first()
    except (ValidationError, ValueError):
        turn = None
    if turn is None:
        raise TurnNotFound
    return turn


def held() -> Q:
    """Return the condition for rows that are in somebody's hands now."""
    return Q(status__in=OPEN, assignee__isnull=False, claim_until__gt=DbNow())


def unheld() -> Q:
    """Return the condition for open rows that are in nobody's hands now."""
    nobody = Q(assignee__isnull=True) | Q(claim_until__isnull=True)
    return Q(status__in=OPEN) & (nobody | Q(claim_until__lte=DbNow()))


def is_held(row: PendingInterrupt, now: datetime) -> bool:
    """Tell whether an open row is in somebody's hands at this moment."""
    return (
        row.status in OPEN
        and row.assignee_id is not None
        and row.claim_until is not None
        and row.claim_until > now
    )


def holder_name(row: PendingInterrupt) -> str:
    """Return the name of whoever a row was last given to."""
    return "" if row.assignee is None else row.assignee.get_username()


def in_the_way_of(user: Person, row: PendingInterrupt, now: datetime) -> bool:
    """Tell whether somebody else's claim keeps this person from closing a row."""
    if not is_held(row, now) or row.assignee_id == user.pk:
        return False
    return not permissions.may_assign(user)


def tool_of(row: PendingInterrupt) -> Tool[Any, Any] | None:
    """Return the registered tool that a call is of, if this process knows it.

    A remote agent's call is of a tool of its own, whatever tool here has the same name.
    """
    return None if row.turn_id is None else registry.tools.get(row.tool_name)


def forks_of(turn: AgentTurn, user: Person) -> QuerySet[AgentTurn]:
    """Return the turns that were forked from one and that a person may see, newest first."""
    return permissions.turns_visible_to(user).filter(parent=turn.pk).order_by("-pk")


def search(text: str) -> Q:
    """Return the condition for the interrupts that a search finds, each by an index.

    An id finds the interrupt or those of the turn; else a text finds the tools and
    agents of this site whose name contains it, those that are called exactly so, and
    the threads that begin with it. Arguments are not searched: that would tell what is
    in a hidden one.
    """
    if "\x00" in text:
        return Q(pk__in=[])  # no database column holds it
    try:
        key = UUID(text)
    except ValueError:
        # No part of it reads the whole table.
        return (
            Q(tool_name__in=_named(text, registry.tools))
            | Q(agent__in=_named(text, registry.agents))
            | Q(thread_id__startswith=text)
        )
    return Q(pk=key) | Q(turn=key) | Q(thread_id=text)


def _named(text: str, known: Iterable[str]) -> list[str]:
    """Return what is called so: known names that contain it, and itself."""
    part = text.casefold()
    return [text, *(name for name in known if part in name.casefold())]


def interrupts_of(
    turns: Sequence[AgentTurn], user: Person
) -> QuerySet[PendingInterrupt]:
    """Return the interrupts of some turns that a person may see."""
    return permissions.visible_to(user).filter(turn__in=turns)


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


def next_open(
    user: Person, after: PendingInterrupt, *, begun: PendingInterrupt | None = None
) -> PendingInterrupt | None:
    """Return the next interrupt that this person could decide, oldest first.

    Goes round: after the newest comes the oldest, so that skipping reaches them all.

    Args:
        user: Who decides.
        after: The one that was looked at last.
        begun: Where this pass over the queue began, so that it comes to an end: the
            answer is None once everything was looked at.
    """
    waiting = _waiting_for(user, after).order_by("requested_at", "pk")
    if begun is None:
        return waiting.filter(_later(after)).first() or waiting.first()
    if _place(after) >= _place(begun):
        later = waiting.filter(_later(after)).first()
        return later or waiting.filter(_earlier(begun)).first()
    return waiting.filter(_later(after), _earlier(begun)).first()


def previous_open(user: Person, before: PendingInterrupt) -> PendingInterrupt | None:
    """Return the interrupt that `next_open` would come from."""
    waiting = _waiting_for(user, before).order_by("-requested_at", "-pk")
    return waiting.filter(_earlier(before)).first() or waiting.first()


def _place(row: PendingInterrupt) -> tuple[datetime, UUID]:
    return row.requested_at, row.pk


def _later(row: PendingInterrupt) -> Q:
    later = Q(requested_at__gt=row.requested_at) | Q(
        requested_at=row.requested_at, pk__gt=row.pk
    )
    # The plain bound is what lets the database walk its index from there.
    return later & Q(requested_at__gte=row.requested_at)


def _earlier(row: PendingInterrupt) -> Q:
    earlier = Q(requested_at__lt=row.requested_at) | Q(
        requested_at=row.requested_at, pk__lt=row.pk
    )
    return earlier & Q(requested_at__lte=row.requested_at)


def _waiting_for(user: Person, beside: PendingInterrupt) -> QuerySet[PendingInterrupt]:
    """Return what this person could decide now, other people's claims respected."""
    in_time = Q(expires_at__isnull=True) | Q(expires_at__gt=DbNow())
    free = Q(assignee__isnull=True) | Q(claim_until__isnull=True)
    free |= Q(claim_until__lte=DbNow()) | Q(assignee=user.pk)
    return (
        permissions.decidable_by(user)
        .filter(in_time, free, status=InterruptStatus.PENDING)
        .exclude(pk=beside.pk)
    )

"""Yields the audit trail as plain JSON values, in a stable order. Judges nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import router
from django.db.models import Q, QuerySet

from hitl_approvals.auditing.chains import UNREADABLE
from hitl_approvals.models import InterruptEvent
from hitl_approvals.models.events import HASHED

PAGE = 100
"""Events that are read together."""


def export(
    *, since: datetime | None = None, turn_id: UUID | None = None
) -> Iterator[dict[str, Any]]:
    """Yield every event as a dict, in the order of their ids: that of writing, nearly.

    One that cannot be read is yielded as its `id` and an `error`.

    Args:
        since: Only events of this moment and later.
        turn_id: Only events of this turn and of its interrupts.
    """
    found = InterruptEvent.objects.using(router.db_for_write(InterruptEvent))
    if since is not None:
        found = found.filter(at__gte=since)
    if turn_id is not None:
        found = found.filter(Q(turn_id=turn_id) | Q(subject_id=turn_id))
    for page in _pages(found):
        yield from _read(found, page)


def _pages(found: QuerySet[InterruptEvent]) -> Iterator[list[UUID]]:
    keys = found.order_by("pk").values_list("pk", flat=True)
    page = list(keys[:PAGE])
    while page:
        yield page
        page = list(keys.filter(pk__gt=page[-1])[:PAGE])


def _read(
    found: QuerySet[InterruptEvent], page: list[UUID]
) -> Iterator[dict[str, Any]]:
    try:
        events = list(found.filter(pk__in=page).order_by("pk"))
    except UNREADABLE:
        yield from (_read_alone(found, pk) for pk in page)
    else:
        yield from map(line, events)


def _read_alone(found: QuerySet[InterruptEvent], pk: UUID) -> dict[str, Any]:
    try:
        return line(found.get(pk=pk))
    except UNREADABLE as error:
        return {"id": str(pk), "error": f"cannot be read: {error!r}"}


def line(event: InterruptEvent) -> dict[str, Any]:
    """Return an event as plain JSON values: what its hash covers, its key and the hash."""
    columns = ("id", *HASHED, "hash")
    return {name: _value(getattr(event, name)) for name in columns}


def _value(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        # Always six digits, so that the texts sort like the moments.
        text = value.astimezone(UTC).isoformat(timespec="microseconds")
        return text.replace("+00:00", "Z")
    return value

"""Reads one interrupt as services need it. Writes nothing."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import ValidationError

from hitl_approvals.exceptions import InterruptNotFound
from hitl_approvals.models import DbNow, PendingInterrupt
from hitl_approvals.services import rows


def read(interrupt_id: UUID | str) -> PendingInterrupt:
    """Return an interrupt with its turn, its queue and the database's time.

    Raises:
        InterruptNotFound: There is no such interrupt.
    """
    try:
        row = (
            rows.interrupts()
            .select_related("turn", "queue")
            .annotate(db_now=DbNow())
            .filter(pk=interrupt_id)
            .first()
        )
    except (ValidationError, ValueError):
        row = None
    if row is None:
        raise InterruptNotFound
    return row

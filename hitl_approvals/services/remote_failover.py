"""Requests of remote agents after a failover: who fetched what is not on record.

An approval that nobody has on record may have been fetched from the old primary, and
acted on. Fetched once more it would act twice, so it is put in doubt.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from hitl_approvals.enums import EventType, InterruptKind, InterruptStatus
from hitl_approvals.models import DbNow, PendingInterrupt
from hitl_approvals.services import rows
from hitl_approvals.services.events import SYSTEM, interrupt_event
from hitl_approvals.services.remote import RUNS, move
from hitl_approvals.services.withdrawing import UNFETCHED

PAGE = 200


def unfetched() -> QuerySet[PendingInterrupt]:
    """Return the approvals that no process of a remote agent has on record."""
    return rows.interrupts().filter(
        UNFETCHED,
        turn__isnull=True,
        status=InterruptStatus.DECIDED,
        decision__in=RUNS,
    )


def waiting() -> QuerySet[PendingInterrupt]:
    """Return the calls that wait for a decision, on record."""
    return rows.interrupts().filter(
        turn__isnull=True,
        status=InterruptStatus.PENDING,
        kind=InterruptKind.TOOL_CALL,
    )


def doubt_unfetched() -> int:
    """Put every approval in doubt that may have been fetched after the last record."""
    doubted = 0
    found = unfetched().annotate(db_now=DbNow()).order_by("pk")
    page = list(found[:PAGE])
    while page:
        doubted += sum(_doubt(row) for row in page)
        page = list(found.filter(pk__gt=page[-1].pk)[:PAGE])
    return doubted


def _doubt(row: Any) -> bool:
    event = interrupt_event(
        row,
        EventType.IN_DOUBT,
        actor=SYSTEM,
        at=row.db_now,
        status=InterruptStatus.IN_DOUBT,
        digest_run=row.decision_digest,
        detail={"note": "The database failed over; who fetched this is not on record."},
    )
    return move(row, event, UNFETCHED, status=InterruptStatus.IN_DOUBT)

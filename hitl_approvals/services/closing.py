"""What becomes of a turn's interrupts when the turn closes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Exists, OuterRef

from hitl_approvals.enums import EventType, InterruptStatus, OutcomeStatus, StepStatus
from hitl_approvals.models import DbNow, InterruptEvent, PendingInterrupt
from hitl_approvals.services import rows
from hitl_approvals.services.events import SYSTEM, head, interrupt_event
from hitl_approvals.types import ActorInfo


def cancel_leftovers(
    candidates: Iterable[PendingInterrupt],
    *,
    at: datetime,
    actor: ActorInfo = SYSTEM,
    outcome: OutcomeStatus = OutcomeStatus.NOT_REQUESTED_AGAIN,
) -> list[InterruptEvent]:
    """Withdraw what is open, except a call that may be under way.

    A call whose step is `started` stays `decided` until its worker records it or the
    sweeper puts it in doubt: withdrawing it would hide an effect.

    Returns:
        The events, for the caller to insert in the same transaction.
    """
    under_way = rows.steps().filter(interrupt=OuterRef("pk"), status=StepStatus.STARTED)
    open_ = (InterruptStatus.PENDING, InterruptStatus.DECIDED)
    written = []
    for row in sorted(candidates, key=lambda row: row.pk):
        if row.status not in open_:
            continue
        event = interrupt_event(
            row,
            EventType.CANCELLED,
            actor=actor,
            at=at,
            status=InterruptStatus.CANCELLED,
            detail={"outcome": str(outcome)},
        )
        changes = {**head(event), "outcome_status": outcome}
        if row.decided_at is None:
            changes["decided_at"] = DbNow()
        moved = (
            rows.interrupts()
            .filter(pk=row.pk, status=row.status, events_count=row.events_count)
            .exclude(Exists(under_way))
            .update(status=InterruptStatus.CANCELLED, **changes)
        )
        if moved:
            written.append(event)
    return written

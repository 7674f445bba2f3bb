"""What time alone does to the requests of remote agents; called by the sweeper."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from hitl_approvals.enums import EventType, InterruptStatus, OutcomeStatus
from hitl_approvals.models import DbNow, PendingInterrupt
from hitl_approvals.services import rows
from hitl_approvals.services.events import SYSTEM, interrupt_event
from hitl_approvals.services.remote import RUNS, move
from hitl_approvals.services.withdrawing import UNFETCHED

_FETCHED = Q(consumed_at__isnull=False)


def _approved() -> QuerySet[PendingInterrupt]:
    # Not by "no turn": the index of turns would lead through all that ever was asked.
    return rows.interrupts().filter(
        status=InterruptStatus.DECIDED, client__isnull=False, decision__in=RUNS
    )


def unfetched() -> QuerySet[Any]:
    """Return the approvals that no process of a remote agent fetched in time."""
    late = _approved().filter(UNFETCHED, execute_by__lte=DbNow())
    return late.annotate(db_now=DbNow()).order_by("execute_by")


def unreported() -> QuerySet[Any]:
    """Return the calls of remote agents whose outcome nobody reported in time."""
    late = _approved().filter(_FETCHED, outcome_due__lte=DbNow())
    return late.annotate(db_now=DbNow()).order_by("outcome_due")


def lapse(row: Any) -> bool:
    """Withdraw an approval that was not fetched in time; the agent has to ask anew."""
    event = interrupt_event(
        row,
        EventType.CANCELLED,
        actor=SYSTEM,
        at=row.db_now,
        status=InterruptStatus.CANCELLED,
        execute_by=row.execute_by,
        detail={"outcome": str(OutcomeStatus.LAPSED)},
    )
    return move(
        row,
        event,
        UNFETCHED & Q(execute_by__lte=DbNow()),
        waits=False,
        status=InterruptStatus.CANCELLED,
        outcome_status=OutcomeStatus.LAPSED,
    )


def doubt(row: Any) -> bool:
    """Show a person a call that was fetched and of which nothing was heard."""
    event = interrupt_event(
        row,
        EventType.IN_DOUBT,
        actor=SYSTEM,
        at=row.db_now,
        status=InterruptStatus.IN_DOUBT,
        digest_run=row.decision_digest,
        detail={"note": "No outcome was reported in time."},
    )
    return move(
        row,
        event,
        _FETCHED & Q(outcome_due__lte=DbNow()),
        waits=False,
        status=InterruptStatus.IN_DOUBT,
    )

"""withdraw(): a remote agent takes back what it asked for, unless it may be acting on it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Q

from hitl_approvals.enums import Door, EventType, InterruptStatus, OutcomeStatus
from hitl_approvals.exceptions import AlreadyConsumed, TransitionNotAllowed
from hitl_approvals.models import DbNow, PendingInterrupt
from hitl_approvals.services import clients, rows
from hitl_approvals.services.events import actor_of, interrupt_event
from hitl_approvals.services.remote import TRIES, Owner, move, read_own, unsettled
from hitl_approvals.text import cleaned
from hitl_approvals.types import Person

UNFETCHED = Q(consumed_at__isnull=True)
_OPEN = (InterruptStatus.PENDING, InterruptStatus.DECIDED)


def withdraw(
    interrupt_id: UUID | str,
    *,
    client: Owner,
    by: Person | None = None,
    reason: str = "",
    via: str = Door.PYTHON,
) -> PendingInterrupt:
    """Take a request back that is undecided, or decided and not fetched.

    Joins the caller's transaction. What is withdrawn already stays so.

    Args:
        interrupt_id: The request.
        client: Whose request it must be, and who takes it back; None is a person.
        by: That person, who needs the right to administer; None is trusted code.
        reason: Why, for the audit trail.
        via: The door, for the audit trail.

    Raises:
        InterruptNotFound: No such request, it is another client's, or `by` may not see
            it.
        ReviewerNotAllowed: `by` may see it only.
        AlreadyConsumed: The decision was fetched, so the call may have been made.
        TransitionNotAllowed: It is over or in doubt, or it is a turn's.
    """
    return withdraw_or_find(interrupt_id, client=client, by=by, reason=reason, via=via)[
        0
    ]


def withdraw_or_find(
    interrupt_id: UUID | str,
    *,
    client: Owner,
    by: Person | None = None,
    reason: str = "",
    via: str = Door.PYTHON,
) -> tuple[PendingInterrupt, bool]:
    """Withdraw like `withdraw`, and say whether it was withdrawn already.

    Raises:
        The same as `withdraw`.
    """
    actor = (
        actor_of(by, via) if client is None else clients.actor_of_client(client, via)
    )
    for _try in range(TRIES):
        row = read_own(interrupt_id, client, by)
        if row.outcome_status == OutcomeStatus.WITHDRAWN:
            return row, True
        _require_unfetched(row)
        event = interrupt_event(
            row,
            EventType.CANCELLED,
            actor=actor,
            at=row.db_now,  # type: ignore[attr-defined]
            status=InterruptStatus.CANCELLED,
            detail={
                "outcome": str(OutcomeStatus.WITHDRAWN),
                "reason": cleaned(reason, 4000),
            },
        )
        changes: dict[str, Any] = {
            "status": InterruptStatus.CANCELLED,
            "outcome_status": OutcomeStatus.WITHDRAWN,
        }
        if row.decided_at is None:
            changes["decided_at"] = DbNow()
        if move(row, event, UNFETCHED, **changes):
            return rows.interrupts().get(pk=row.pk), False
    raise unsettled(interrupt_id)


def _require_unfetched(row: PendingInterrupt) -> None:
    context: dict[str, Any] = {"interrupt_id": str(row.pk), "status": row.status}
    if row.status not in _OPEN:
        raise TransitionNotAllowed(
            f"This is {row.get_status_display()}; there is nothing to withdraw.",
            **context,
        )
    if row.consumed_at is not None:
        raise AlreadyConsumed(
            "The decision was fetched and the call may have been made; report what "
            "came of it instead.",
            **context,
        )

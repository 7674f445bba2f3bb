"""What the services for remote agents share: reading a client's row, and moving it.

These rows have no turn, so every transaction begins with the interrupt's own
conditional update, and there is no second row whose lock it could wait for.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Q

from hitl_approvals import failpoints
from hitl_approvals.enums import DecisionType, InterruptStatus
from hitl_approvals.exceptions import InterruptNotFound, TransitionNotAllowed
from hitl_approvals.models import AgentClient, InterruptEvent, PendingInterrupt
from hitl_approvals.permissions import require_withdraw
from hitl_approvals.services import reading, rows
from hitl_approvals.services.events import head
from hitl_approvals.services.recording import record_event
from hitl_approvals.services.transactions import run_atomic
from hitl_approvals.types import Person

TRIES = 5
"""A row that moves between reading and writing is read again, this often."""
RUNS = (DecisionType.APPROVE, DecisionType.EDIT)
"""Decisions after which the agent acts."""
Owner = AgentClient | None
"""Whose request it must be; None is trusted code."""


def read_own(
    interrupt_id: UUID | str, client: Owner, by: Person | None = None
) -> PendingInterrupt:
    """Return a remote agent's request with the database's time.

    Args:
        interrupt_id: The request.
        client: Whose it must be.
        by: The person who wants to withdraw it, where no client does.

    Raises:
        InterruptNotFound: No such interrupt, it is another client's, or the person may
            not see it.
        ReviewerNotAllowed: The person may see it only.
        TransitionNotAllowed: It is a turn's.
    """
    row = reading.read(interrupt_id)
    if client is not None and row.client_id != client.pk:
        raise InterruptNotFound
    require_withdraw(by, row)
    if row.client_id is None:
        raise TransitionNotAllowed(
            "This belongs to a turn of an agent here; only requests of remote agents "
            "are fetched, reported and withdrawn. To take it back, cancel its turn.",
            interrupt_id=str(row.pk),
        )
    return row


def move(
    row: PendingInterrupt,
    event: InterruptEvent,
    condition: Q,
    *,
    waits: bool = True,
    **changes: Any,
) -> bool:
    """Write a row and its event if the row is as it was read; False if it is not.

    Args:
        row: The row as it was read.
        event: The event that tells of the change.
        condition: What must hold besides, by the database's clock.
        waits: Whether to wait for a row that another process holds.
        changes: The columns to set.
    """

    def work() -> bool:
        if not waits and not rows.take(rows.interrupts().filter(pk=row.pk)):
            return False
        moved = (
            rows.interrupts()
            .filter(
                condition,
                pk=row.pk,
                client=row.client_id,
                status=row.status,
                events_count=row.events_count,
            )
            .update(**changes, **head(event))
        )
        if moved:
            record_event(event)
        failpoints.reach("remote.before_commit")
        return bool(moved)

    moved = run_atomic(work)
    failpoints.reach("remote.after_commit")
    return moved


def unsettled(interrupt_id: UUID | str) -> TransitionNotAllowed:
    """Return the refusal for a row that moved again and again while it was read."""
    return TransitionNotAllowed(
        "The request changed while yours was on its way; nothing was changed. Try again.",
        interrupt_id=str(interrupt_id),
    )


def is_fetched(row: PendingInterrupt) -> bool:
    """Tell whether a process of the agent may act on an approval."""
    return (
        row.status == InterruptStatus.DECIDED
        and row.consumed_at is not None
        and row.decision in RUNS
    )

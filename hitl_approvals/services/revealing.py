"""reveal(): show hidden arguments to one person, and write down that they saw them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Q

from hitl_approvals import canonical, permissions
from hitl_approvals.enums import EventType, InterruptStatus
from hitl_approvals.exceptions import TransitionNotAllowed
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.services.claims import TRIES, append_aside
from hitl_approvals.services.events import actor_of, interrupt_event
from hitl_approvals.services.reading import read
from hitl_approvals.services.verdicts import frozen
from hitl_approvals.types import Person


def reveal(interrupt_id: UUID | str, *, by: Person | None, via: str) -> dict[str, Any]:
    """Return the hidden arguments of a call, after the event of it is committed.

    Refuses to be part of a caller's transaction: a rollback would take back the record
    of what somebody has seen.

    Args:
        interrupt_id: A call with arguments that its tool declared as hidden.
        by: Who wants to see them; None is trusted code.
        via: The door, for the audit trail.

    Returns:
        The hidden arguments of what may run or ran: the edited ones, if there are any.

    Raises:
        InterruptNotFound: No such row, or it may not be seen.
        ReviewerNotAllowed: The right to reveal is missing.
        TransitionNotAllowed: Nothing is hidden, or a worker may have the call in hand.
        SnapshotMismatch: The stored arguments are not the ones that were frozen.
    """
    for _try in range(TRIES):
        row = read(interrupt_id)
        permissions.require_reveal(by, row)
        found = _hidden(row)
        event = interrupt_event(
            row,
            EventType.REVEALED,
            actor=actor_of(by, via),
            at=row.db_now,  # type: ignore[attr-defined]
            status=row.status,
            detail={"arguments": sorted(found)},
        )
        if append_aside(row, event, Q(), durable=True):
            return found
    raise TransitionNotAllowed(
        "The row changed while yours was on its way; nothing was shown. Try again.",
        interrupt_id=str(interrupt_id),
    )


def _hidden(row: PendingInterrupt) -> dict[str, Any]:
    context: dict[str, Any] = {"interrupt_id": str(row.pk), "status": row.status}
    if row.status == InterruptStatus.DECIDED:
        # Whoever runs the call continues the chain from what it read before.
        raise TransitionNotAllowed(
            "The call is decided and may be under way; look at it again once it is "
            "over.",
            **context,
        )
    names = set((row.policy or {}).get("redact") or ())
    text = row.args_text
    if text is not None:
        frozen(row)
    if row.decision_args_text is not None:
        text = row.decision_args_text
    args: Any = None if text is None else canonical.stored(text)
    if not isinstance(args, dict) or not names & args.keys():
        raise TransitionNotAllowed("Nothing is hidden here.", **context)
    return {name: args[name] for name in names & args.keys()}

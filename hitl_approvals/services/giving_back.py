"""give_back(): a remote agent returns an approval that it fetched and did not use."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q

from hitl_approvals.enums import Door, EventType
from hitl_approvals.exceptions import TransitionNotAllowed
from hitl_approvals.models import AgentClient
from hitl_approvals.services import clients
from hitl_approvals.services.consuming import gave_back, names_of, require_consumer
from hitl_approvals.services.events import interrupt_event
from hitl_approvals.services.remote import TRIES, is_fetched, move, read_own, unsettled
from hitl_approvals.text import cleaned


def give_back(
    interrupt_id: UUID | str,
    *,
    client: AgentClient,
    key: str,
    reason: str = "",
    via: str = Door.PYTHON,
) -> bool:
    """Return a fetched approval: the call was not made under this key and will not be.

    Joins the caller's transaction. The approval can be fetched again, under any other
    key, before its `execute_by`. Whoever may have acted must `report_outcome` instead.

    Args:
        interrupt_id: The request.
        client: Who returns it.
        key: The key under which it was fetched.
        reason: Why it was not used, for the audit trail.
        via: The door, for the audit trail.

    Returns:
        True when this key had given it back before and nothing was written now.

    Raises:
        InterruptNotFound: No such request, or it is another client's.
        TransitionNotAllowed: Nobody has it, it is over or in doubt, or it is a turn's.
        AlreadyConsumed: It was fetched under another key.
    """
    actor = clients.actor_of_client(client, via)
    for _try in range(TRIES):
        row = read_own(interrupt_id, client)
        if row.consume_key not in names_of(row, key) and gave_back(row, key):
            return True
        require_consumer(row, key)
        if not is_fetched(row):
            raise TransitionNotAllowed(
                f"This is {row.get_status_display()}; there is nothing to give back.",
                interrupt_id=str(row.pk),
                status=row.status,
            )
        event = interrupt_event(
            row,
            EventType.GIVEN_BACK,
            actor=actor,
            at=row.db_now,  # type: ignore[attr-defined]
            status=row.status,
            digest_shown=row.args_digest,
            digest_run=row.decision_digest,
            execute_by=row.execute_by,
            detail={"reason": cleaned(reason, 4000), "key": row.consume_key},
        )
        held = Q(consume_key=row.consume_key)
        if move(row, event, held, consumed_at=None, consume_key=None, outcome_due=None):
            return False
    raise unsettled(interrupt_id)

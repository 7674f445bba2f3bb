"""What a message says: which row it is, and where it stands. Reads no row itself.

As little as is useful: whoever is told reads the rest over the API, with rights.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hitl_approvals import canonical
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from hitl_approvals.webhooks.events import WebhookEvent


def message(
    kind: WebhookEvent,
    event: InterruptEvent,
    row: PendingInterrupt | AgentTurn,
    *,
    include_args: bool = False,
) -> dict[str, Any]:
    """Return the body of one message.

    Args:
        kind: What is told.
        event: The audit event that it is told of.
        row: The interrupt or turn as the transition left it.
        include_args: Whether the arguments of a call go with it.
    """
    if isinstance(row, AgentTurn):
        data = turn_data(event, row)
    else:
        data = interrupt_data(event, row)
        if include_args:
            data |= _args(row)
    return {"type": str(kind), "timestamp": _time(event.at), "data": data}


def interrupt_data(event: InterruptEvent, row: PendingInterrupt) -> dict[str, Any]:
    """Return what is said of an interrupt, in the words of the API."""
    return {
        "id": str(row.pk),
        "event_id": str(event.pk),
        "sequence": event.sequence,
        "status": row.status,
        "revision": row.revision,
        "generation": row.generation,
        "kind": row.kind,
        "turn": None if row.turn_id is None else str(row.turn_id),
        "client": None if row.client is None else row.client.name,
        "client_ref": row.client_ref or None,
        "agent": row.agent or None,
        "thread_id": row.thread_id or None,
        "tool_name": row.tool_name or None,
        "tool_call_id": row.tool_call_id or None,
        "args_digest": row.args_digest or None,
        "tags": row.tags,
        "queue": row.queue_id,
        "priority": row.priority,
        "allowed_decisions": row.allowed_decisions,
        "decision": row.decision,
        "decision_digest": row.decision_digest or None,
        "requested_at": _time(row.requested_at),
        "expires_at": _time(row.expires_at),
        "decided_at": _time(row.decided_at),
        "execute_by": _time(row.execute_by),
        "consumed_at": _time(row.consumed_at),
        "outcome_status": row.outcome_status or None,
        "resolved_at": _time(row.resolved_at),
    }


def turn_data(event: InterruptEvent, turn: AgentTurn) -> dict[str, Any]:
    """Return what is said of a turn, in the words of the API."""
    return {
        "id": str(turn.pk),
        "event_id": str(event.pk),
        "sequence": event.sequence,
        "status": turn.status,
        "agent": turn.agent,
        "agent_version": turn.agent_version,
        "thread_id": turn.thread_id or None,
        "parent": None if turn.parent_id is None else str(turn.parent_id),
        "created_at": _time(turn.created_at),
        "finished_at": _time(turn.finished_at),
    }


def _args(row: PendingInterrupt) -> dict[str, Any]:
    """Return the arguments, or nulls where the tool hides any of them."""
    if (row.policy or {}).get("redact"):
        return {"args": None, "decision_args": None}
    return {
        "args": _stored(row.args_text),
        "decision_args": _stored(row.decision_args_text),
    }


def _stored(text: str | None) -> Any:
    """Return the value of a canonical text; null if somebody made it unreadable."""
    if text is None:
        return None
    try:
        return canonical.stored(text)
    except PayloadRejected:
        return None


def _time(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")

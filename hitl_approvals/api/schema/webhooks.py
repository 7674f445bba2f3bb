"""What the site sends by itself: the `webhooks` of the document, one for each event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hitl_approvals.api.schema.answers import INTERRUPT, TEXT, TURN
from hitl_approvals.api.schema.parameters import header
from hitl_approvals.api.schema.shapes import (
    COUNT,
    DIGEST,
    MOMENT,
    OBJECT,
    UUID,
    Shape,
    answer,
    or_null,
    ref,
    said,
)
from hitl_approvals.webhooks.events import WebhookEvent, is_of_an_interrupt

ABOUT: dict[WebhookEvent, str] = {
    WebhookEvent.INTERRUPT_RAISED: "Somebody has to decide",
    WebhookEvent.INTERRUPT_DECIDED: "A person decided",
    WebhookEvent.INTERRUPT_RESOLVED: "The decision was applied",
    WebhookEvent.INTERRUPT_EXPIRED: "Nobody decided in time",
    WebhookEvent.INTERRUPT_CANCELLED: "Nothing will come of it",
    WebhookEvent.INTERRUPT_IN_DOUBT: "Whether the call happened is unknown",
    WebhookEvent.TURN_COMPLETED: "The agent returned",
    WebhookEvent.TURN_FAILED: "The agent gave up",
    WebhookEvent.TURN_CANCELLED: "A person or the site ended the turn",
    WebhookEvent.TURN_NEEDS_ATTENTION: "Only a person gets the turn going again",
}
_MARK: dict[str, Shape] = {
    "id": UUID,
    "event_id": said(UUID, "The event in the audit trail."),
    "sequence": said(
        COUNT,
        "Counts the events of this row: messages may come out of order.",
    ),
}
_SAME = ("status", "revision", "generation", "kind", "turn", "client")
_OF_INTERRUPTS: dict[str, Shape] = {
    **_MARK,
    **{name: INTERRUPT[name] for name in _SAME},
    "client_ref": or_null(TEXT),
    "agent": or_null(TEXT),
    "thread_id": or_null(TEXT),
    "tool_name": or_null(TEXT),
    "tool_call_id": or_null(TEXT),
    "args_digest": INTERRUPT["args_digest"],
    "tags": INTERRUPT["tags"],
    "queue": TEXT,
    "priority": INTERRUPT["priority"],
    "allowed_decisions": INTERRUPT["allowed_decisions"],
    "decision": INTERRUPT["decision"],
    "decision_digest": said(or_null(DIGEST), "Digest of what may run."),
    "requested_at": MOMENT,
    "expires_at": or_null(MOMENT),
    "decided_at": or_null(MOMENT),
    "execute_by": or_null(MOMENT),
    "consumed_at": or_null(MOMENT),
    "outcome_status": INTERRUPT["outcome_status"],
    "resolved_at": or_null(MOMENT),
}
_ARGS: dict[str, Shape] = {
    "args": said(or_null(OBJECT), "Only for endpoints that are set up to get them."),
    "decision_args": or_null(OBJECT),
}
_OF_TURNS: dict[str, Shape] = {
    **_MARK,
    "status": TURN["status"],
    "agent": TEXT,
    "agent_version": TEXT,
    "thread_id": or_null(TEXT),
    "parent": TURN["parent"],
    "created_at": MOMENT,
    "finished_at": or_null(MOMENT),
}
_HEADERS = [
    header(
        "webhook-id", {"type": "string"}, "The same at each attempt.", required=True
    ),
    header(
        "webhook-timestamp",
        {"type": "string", "pattern": r"^\d+$"},
        "Seconds since 1970, when this attempt was signed.",
        required=True,
    ),
    header(
        "webhook-signature",
        {"type": "string"},
        "One or more signatures as of Standard Webhooks, with blanks between.",
        required=True,
    ),
]


def components() -> Iterator[tuple[str, Shape]]:
    """Describe the bodies of messages."""
    data = answer(_OF_INTERRUPTS)
    data["properties"] |= _ARGS
    for name, shape in (
        ("InterruptMessage", data),
        ("TurnMessage", answer(_OF_TURNS)),
    ):
        told = is_of_an_interrupt if name == "InterruptMessage" else is_of_a_turn
        kinds = [str(event) for event in WebhookEvent if told(event)]
        yield (
            name,
            answer(
                {
                    "type": {"type": "string", "enum": kinds},
                    "timestamp": said(MOMENT, "When it happened."),
                    "data": shape,
                }
            ),
        )


def is_of_a_turn(event: WebhookEvent) -> bool:
    """Tell a turn's event from an interrupt's."""
    return not is_of_an_interrupt(event)


def webhooks() -> dict[str, Any]:
    """Return the `webhooks` of the document."""
    return {str(event): {"post": _message(event)} for event in WebhookEvent}


def _message(event: WebhookEvent) -> Shape:
    name = "InterruptMessage" if is_of_an_interrupt(event) else "TurnMessage"
    return {
        "operationId": f"on_{event.name.lower()}",
        "tags": ["webhooks"],
        "summary": ABOUT[event],
        "parameters": _HEADERS,
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": ref(name)}},
        },
        "responses": {"2XX": {"description": "Taken; it is not sent again."}},
    }

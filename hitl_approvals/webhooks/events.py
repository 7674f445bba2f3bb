"""What the outside is told: a few names for many audit events."""

from __future__ import annotations

from enum import StrEnum
from fnmatch import fnmatchcase

from hitl_approvals.enums import EventType


class WebhookEvent(StrEnum):
    """The names of the events that webhooks and signals tell of."""

    INTERRUPT_RAISED = "interrupt.raised"
    """Somebody has to decide: a new request, or one that came back for another decision."""
    INTERRUPT_DECIDED = "interrupt.decided"
    """A person decided, or allows a call of unknown fate to run once more."""
    INTERRUPT_RESOLVED = "interrupt.resolved"
    """The decision was applied, or a person found out that the call happened."""
    INTERRUPT_EXPIRED = "interrupt.expired"
    """Nobody decided in time."""
    INTERRUPT_CANCELLED = "interrupt.cancelled"
    """It was withdrawn, lapsed or given up; nothing will come of it."""
    INTERRUPT_IN_DOUBT = "interrupt.in_doubt"
    """Whether the call happened is unknown; somebody has to find out."""
    TURN_COMPLETED = "turn.completed"
    """The agent returned."""
    TURN_FAILED = "turn.failed"
    """The agent gave up."""
    TURN_CANCELLED = "turn.cancelled"
    """A person or the site ended the turn."""
    TURN_NEEDS_ATTENTION = "turn.needs_attention"
    """The turn stopped, and only a person gets it going again."""


TOLD: dict[str, WebhookEvent] = {
    EventType.RAISED: WebhookEvent.INTERRUPT_RAISED,
    EventType.LAPSED: WebhookEvent.INTERRUPT_RAISED,
    EventType.REOPENED: WebhookEvent.INTERRUPT_RAISED,
    EventType.APPROVED: WebhookEvent.INTERRUPT_DECIDED,
    EventType.EDITED: WebhookEvent.INTERRUPT_DECIDED,
    EventType.REJECTED: WebhookEvent.INTERRUPT_DECIDED,
    EventType.RESPONDED: WebhookEvent.INTERRUPT_DECIDED,
    EventType.SETTLED_RUN_AGAIN: WebhookEvent.INTERRUPT_DECIDED,
    EventType.RESOLVED: WebhookEvent.INTERRUPT_RESOLVED,
    EventType.SETTLED_HAPPENED: WebhookEvent.INTERRUPT_RESOLVED,
    EventType.EXPIRED: WebhookEvent.INTERRUPT_EXPIRED,
    EventType.CANCELLED: WebhookEvent.INTERRUPT_CANCELLED,
    EventType.SETTLED_GAVE_UP: WebhookEvent.INTERRUPT_CANCELLED,
    EventType.IN_DOUBT: WebhookEvent.INTERRUPT_IN_DOUBT,
    EventType.TURN_COMPLETED: WebhookEvent.TURN_COMPLETED,
    EventType.TURN_FAILED: WebhookEvent.TURN_FAILED,
    EventType.TURN_CANCELLED: WebhookEvent.TURN_CANCELLED,
    EventType.TURN_NEEDS_ATTENTION: WebhookEvent.TURN_NEEDS_ATTENTION,
}
"""Which audit event is told as what."""

UNTOLD = frozenset(
    {
        EventType.COPIED,
        EventType.CONSUMED,
        EventType.GIVEN_BACK,
        EventType.LATE_RESULT,
        EventType.CLAIMED,
        EventType.RELEASED,
        EventType.ASSIGNED,
        EventType.REVEALED,
        EventType.TURN_RETRIED,
        EventType.TURN_RESTARTED,
        EventType.TURN_FORKED,
        EventType.TURN_BEGUN_AS_FORK,
    }
)
"""Audit events that stay inside: the rows' own bookkeeping, and who looks at them."""


def is_pattern(text: str) -> bool:
    """Tell whether an endpoint's pattern can match anything that is told."""
    return any(matches(text, event) for event in WebhookEvent)


def matches(pattern: str, event: WebhookEvent) -> bool:
    """Tell whether a pattern such as `interrupt.*` means this event."""
    return fnmatchcase(str(event), pattern)


def is_of_an_interrupt(event: WebhookEvent) -> bool:
    """Tell an interrupt's event from a turn's."""
    return event.startswith("interrupt.")

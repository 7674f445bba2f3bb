"""Sends the site's signals once the change that they tell of is committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.dispatch import Signal

from hitl_approvals import signals
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from hitl_approvals.services.transactions import alias
from hitl_approvals.webhooks.events import TOLD, WebhookEvent


def signal_of(event: WebhookEvent) -> Signal:
    """Return the signal of an event: `interrupt.raised` is `interrupt_raised`."""
    found: Signal = getattr(signals, event.replace(".", "_"))
    return found


def tell_after_commit(events: Sequence[InterruptEvent]) -> None:
    """Let receivers hear of these events, if there are any, once they are committed."""
    for event in events:
        kind = TOLD.get(event.type)
        if kind is None:
            continue
        signal = signal_of(kind)
        sender = AgentTurn if event.interrupt_id is None else PendingInterrupt
        if signal.has_listeners(sender):
            _send_after_commit(signal, sender, _facts(event))


def _send_after_commit(signal: Signal, sender: type, facts: dict[str, Any]) -> None:
    def send() -> None:
        signal.send_robust(sender, **facts)

    transaction.on_commit(send, using=alias(), robust=True)


def _facts(event: InterruptEvent) -> dict[str, Any]:
    return {
        "interrupt_id": event.interrupt_id,
        "turn_id": event.turn_id,
        "event_id": event.pk,
        "event_type": event.type,
        "status": event.status,
        "generation": event.generation,
        "revision": event.revision,
        "decision": event.decision or None,
        "at": event.at,
    }

"""Writes what webhooks are owed, in the transaction of the change that they tell of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias
from uuid import UUID

from django.db import transaction

from hitl_approvals import dispatchers
from hitl_approvals.conf import hitl_settings
from hitl_approvals.models import (
    AgentTurn,
    DbNow,
    Delivery,
    InterruptEvent,
    PendingInterrupt,
    db_now_plus,
)
from hitl_approvals.services import rows
from hitl_approvals.services.transactions import alias
from hitl_approvals.webhooks.endpoints import Endpoint, endpoints
from hitl_approvals.webhooks.events import TOLD, WebhookEvent
from hitl_approvals.webhooks.payloads import message

LONG = (
    "args",
    "args_schema",
    "context",
    "decision_value",
    "outcome",
    "payload",
    "response_schema",
    "submission",
    "tool_description",
)
LONG_OF_TURNS = ("execute_options", "input", "output", "state")
"""Columns that nothing is said of and that may be long."""

Subject: TypeAlias = PendingInterrupt | AgentTurn


def owe(events: Sequence[InterruptEvent]) -> None:
    """Write a delivery for each endpoint that wants one of these events.

    Costs a site without webhooks nothing; else one statement for the interrupts, one for
    the turns, and one for all deliveries. The rows are read as the transition left them,
    and what is said of them does not change afterwards.
    """
    known = endpoints()
    if not known:
        return
    told = [(event, TOLD[event.type]) for event in events if event.type in TOLD]
    wanted = [one for one in told if any(point.wants(one[1]) for point in known)]
    if not wanted:
        return
    subjects = _subjects([event for event, _kind in wanted])
    owed = list(_owed(wanted, subjects, known))
    if not owed:
        return
    rows.deliveries().bulk_create(owed)
    announce(sorted({one.channel for one in owed}))


def announce(channels: Sequence[str]) -> None:
    """Let whoever delivers hear of these channels, after the commit."""

    def deliver() -> None:
        dispatchers.deliver(channels)

    # Not a partial: Django asks for the name of what fails.
    transaction.on_commit(deliver, using=alias(), robust=True)


def _subjects(events: Sequence[InterruptEvent]) -> dict[UUID, Subject]:
    found: dict[UUID, Subject] = {}
    interrupts = {one.interrupt_id for one in events if one.interrupt_id is not None}
    turns = {one.subject_id for one in events if one.interrupt_id is None}
    if interrupts:
        short = rows.interrupts().select_related("client").defer(*LONG)
        found |= short.in_bulk(interrupts)
    if turns:
        found |= rows.turns().defer(*LONG_OF_TURNS).in_bulk(turns)
    return found


def _owed(
    wanted: Sequence[tuple[InterruptEvent, WebhookEvent]],
    subjects: dict[UUID, Subject],
    known: Sequence[Endpoint],
) -> Iterator[Delivery]:
    for event, kind in wanted:
        subject = subjects[event.subject_id]
        for endpoint in known:
            if endpoint.wants(kind) and _is_of_interest(endpoint, subject):
                yield Delivery(
                    channel=endpoint.channel,
                    event_type=kind,
                    event_id=event.pk,
                    subject_id=event.subject_id,
                    body=message(
                        kind, event, subject, include_args=endpoint.include_args
                    ),
                    next_attempt_at=DbNow(),
                    give_up_at=db_now_plus(hitl_settings.webhook_give_up_after),
                )


def _is_of_interest(endpoint: Endpoint, subject: Subject) -> bool:
    if isinstance(subject, AgentTurn):
        return True
    client = None if subject.client is None else subject.client.name
    return endpoint.wants_of(subject.queue_id, client)

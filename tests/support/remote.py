"""Requests of a remote agent, its processes' calls, and the times that they wait for."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any

from hitl_approvals import Approve, services
from hitl_approvals.models import (
    AgentClient,
    InterruptEvent,
    PendingInterrupt,
    db_now_plus,
)
from hitl_approvals.services import clients

PAST = db_now_plus(timedelta(seconds=-2))
ARGS = {"order": "7", "amount": 120}
SCHEMA = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "amount": {"type": "integer"}},
    "required": ["order", "amount"],
    "additionalProperties": False,
}
_refs = count(1)


def a_client(name: str = "billing") -> AgentClient:
    return clients.ensure_client(name)


def ask(client: AgentClient | None = None, **changes: Any) -> PendingInterrupt:
    """Raise a tool call, unlike every other one unless the test says how."""
    asked = {
        "ref": f"ref-{next(_refs)}",
        "tool_name": "refund",
        "args": ARGS,
        **changes,
    }
    receipt = services.raise_remote(client or a_client(), **asked)
    return PendingInterrupt.objects.get(pk=receipt.interrupt_id)


def ask_question(client: AgentClient | None = None, **changes: Any) -> PendingInterrupt:
    asked = {
        "kind": "question",
        "tool_name": "",
        "args": None,
        "payload": {"question": "Which account?"},
        **changes,
    }
    return ask(client, **asked)


def approved(client: AgentClient | None = None, **changes: Any) -> PendingInterrupt:
    return decided(ask(client, **changes))


def decided(row: PendingInterrupt, decision: Any = None) -> PendingInterrupt:
    services.decide(row.pk, decision or Approve(), by=None, via="test")
    return fresh(row)


def fetched(
    client: AgentClient | None = None, *, key: str = "k", **changes: Any
) -> PendingInterrupt:
    """Return a row whose approval one process has."""
    row = approved(client, **changes)
    fetch(row, key=key)
    return fresh(row)


def in_doubt(client: AgentClient | None = None, **changes: Any) -> PendingInterrupt:
    row = fetched(client, **changes)
    report(row, "unknown", error="timed out")
    return fresh(row)


def fetch(row: PendingInterrupt, *, key: str = "k", **changes: Any) -> Any:
    return services.consume(row.pk, client=changes.pop("client", row.client), key=key)


def report(
    row: PendingInterrupt, status: Any = "succeeded", *, key: str = "k", **changes: Any
) -> Any:
    client = changes.pop("client", row.client)
    return services.report_outcome(
        row.pk, client=client, key=key, status=status, **changes
    )


def give_back(row: PendingInterrupt, *, key: str = "k", **changes: Any) -> bool:
    client = changes.pop("client", row.client)
    return services.give_back(row.pk, client=client, key=key, **changes)


def withdraw(row: PendingInterrupt, **changes: Any) -> PendingInterrupt:
    return services.withdraw(row.pk, **{"client": row.client, **changes})


def fresh(row: PendingInterrupt) -> PendingInterrupt:
    return PendingInterrupt.objects.select_related("client").get(pk=row.pk)


def kinds(row: PendingInterrupt) -> list[str]:
    """Return the types of a row's events, oldest first."""
    return [event.type for event in events(row)]


def events(row: PendingInterrupt) -> list[InterruptEvent]:
    found = InterruptEvent.objects.filter(subject_id=row.pk)
    return list(found.order_by("sequence"))


def pass_time(row: PendingInterrupt, column: str) -> None:
    """Let a moment that a row waits for lie in the past."""
    PendingInterrupt.objects.filter(pk=row.pk).update(**{column: PAST})

"""Rows in every state that the API can meet, made by the package's own means."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Permission, User
from django.utils import timezone

from hitl_approvals import Approve, run_turn, services, start_turn
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from hitl_approvals.services import decisions
from tests.api import agents_for_api  # noqa: F401  registers the agent

REFUND = {"order": "A-1", "amount": 1200}
LIST = "/api/interrupts/"
TURNS = "/api/turns/"


def url(row: PendingInterrupt, verb: str = "") -> str:
    return f"{LIST}{row.pk}/{verb}/" if verb else f"{LIST}{row.pk}/"


def user(name: str, *permissions: str) -> User:
    made = User.objects.create_user(name, password="pw")
    for codename in permissions:
        made.user_permissions.add(
            Permission.objects.get(
                content_type__app_label="hitl_approvals", codename=codename
            )
        )
    return made


def call(name: str, args: Any, call_id: str = "c1") -> dict[str, Any]:
    return {"id": call_id, "name": name, "args": args}


def suspended(*calls: dict[str, Any], by: User | None = None) -> AgentTurn:
    return start_turn(
        "api_agent", {"calls": list(calls)}, requested_by=by, thread_id=None, run=True
    )


def pending(
    name: str = "api_refund", args: Any = None, by: User | None = None
) -> PendingInterrupt:
    turn = suspended(call(name, REFUND if args is None else args), by=by)
    return turn.interrupts.get()


def question(payload: Any, schema: Any = None) -> PendingInterrupt:
    prompt = {"question": payload, "schema": schema}
    return start_turn("api_agent", prompt, run=True).interrupts.get()


def decided(by: User | None = None) -> PendingInterrupt:
    row = pending(by=by)
    services.decide(row.pk, Approve(), by=None, via="python")
    return row


def resolved(by: User | None = None) -> PendingInterrupt:
    row = decided(by)
    assert run_turn(row.turn_id) == "completed"
    return row


def cancelled(by: User | None = None) -> PendingInterrupt:
    row = pending(by=by)
    services.cancel(row.turn_id, by=None, via="python")
    return row


def overdue(by: User | None = None) -> PendingInterrupt:
    """Past its time, and no sweeper has come by yet."""
    row = pending(by=by)
    past = timezone.now() - timedelta(hours=1)
    PendingInterrupt.objects.filter(pk=row.pk).update(expires_at=past)
    return row


def expired(by: User | None = None) -> PendingInterrupt:
    row = overdue(by)
    assert decisions.expire(row.pk)
    return row


def in_doubt(by: User | None = None) -> PendingInterrupt:
    row = pending("api_flaky", {"order": "A-1"}, by=by)
    services.decide(row.pk, Approve(), by=None, via="python")
    assert run_turn(row.turn_id) == "suspended"
    return row


STATES: dict[str, Callable[..., PendingInterrupt]] = {
    "pending": pending,
    "decided": decided,
    "resolved": resolved,
    "cancelled": cancelled,
    "overdue": overdue,
    "expired": expired,
    "in_doubt": in_doubt,
}


def make(state: str, by: User | None = None) -> PendingInterrupt:
    row = STATES[state](by=by)
    row.refresh_from_db()
    return row


def events(row: PendingInterrupt) -> list[str]:
    found = InterruptEvent.objects.filter(subject_id=row.pk).order_by("sequence")
    return list(found.values_list("type", flat=True))

"""Rows in every status, people in every role, and every action that a row knows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from hitl_approvals import run_turn, services
from hitl_approvals.models import (
    AgentClient,
    AgentTurn,
    IdempotencyRecord,
    InterruptEvent,
    PendingInterrupt,
    ReviewQueue,
    TurnStep,
)
from tests.api import scenes

QUEUE = "matrix"
KEY = "k"
REFUND = {"order": "A-1", "amount": 1200}
RIGHTS: dict[str, tuple[str, ...]] = {
    "stranger": (),
    "viewer": ("view_pendinginterrupt", "view_agentturn"),
    "outsider": ("decide_pendinginterrupt",),
    "reviewer": ("decide_pendinginterrupt",),
    "requester": ("decide_pendinginterrupt", "add_agentturn"),
    "settler": ("view_pendinginterrupt", "settle_pendinginterrupt"),
    "assigner": ("decide_pendinginterrupt", "assign_pendinginterrupt"),
    "administrator": ("administer_pendinginterrupt", "view_agentturn"),
}
MEMBERS = ("viewer", "reviewer", "requester", "settler", "assigner", "superuser")
BODIES: dict[str, Any] = {
    "approve": {},
    "reject": {"reason": "not this one"},
    "edit": {"args": {"order": "A-1", "amount": 900}},
    "respond": {"value": 42},
    "settle": {"answer": "give_up"},
    "claim": {},
    "release": {},
    "assign": {"to": "reviewer"},
    "re-review": {},
    "cancel": {},
    "consume": {},
    "outcome": {"status": "succeeded"},
    "give-back": {},
}
READS = ("read", "events")
TURN_BODIES: dict[str, Any] = {"cancel": {}, "retry": {}, "restart": {}, "fork": {}}
TURN_READS = ("read", "events", "steps")
TABLES = (PendingInterrupt, AgentTurn, TurnStep, InterruptEvent, IdempotencyRecord)


class Cast:
    """The people and the agent clients of the matrix."""

    def __init__(self) -> None:
        self.users = {name: scenes.user(name, *r) for name, r in RIGHTS.items()}
        self.users["superuser"] = User.objects.create_superuser("superuser")
        self.holder = scenes.user("holder", "decide_pendinginterrupt")
        queue = ReviewQueue.objects.create(slug=QUEUE)
        queue.users.set([self.users[name] for name in MEMBERS] + [self.holder])
        self.callers = {"anonymous": APIClient()}
        for name, user in self.users.items():
            self.callers[name] = APIClient()
            self.callers[name].force_authenticate(user)
        self.owner, *_ = (
            self._agent(name) for name in ("owner", "other client", "revoked client")
        )
        revoked = AgentClient.objects.get(name="revoked client")
        AgentClient.objects.filter(pk=revoked.pk).update(revoked_at=timezone.now())

    def _agent(self, name: str) -> AgentClient:
        made, token = services.create_client(name, queue=QUEUE, by=None)
        self.callers[name] = APIClient()
        self.callers[name].credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
        return made

    @property
    def requester(self) -> User:
        return self.users["requester"]

    # Rows of turns.

    def pending(self, tool: str = "api_refund", args: Any = None) -> PendingInterrupt:
        row = scenes.pending(tool, args or REFUND, by=self.requester)
        PendingInterrupt.objects.filter(pk=row.pk).update(queue=QUEUE)
        row.refresh_from_db()
        return row

    def claimed(self) -> PendingInterrupt:
        row = self.pending()
        services.claim(row.pk, by=self.holder, via="test")
        return row

    def decided(self, tool: str = "api_refund", args: Any = None) -> PendingInterrupt:
        row = self.pending(tool, args)
        services.decide(row.pk, {"type": "approve"}, by=None, via="test")
        return row

    def resolved(self) -> PendingInterrupt:
        row = self.decided()
        assert run_turn(row.turn_id) == "completed"
        return row

    def cancelled(self) -> PendingInterrupt:
        row = self.pending()
        services.cancel(row.turn_id, by=None, via="test")
        return row

    def in_doubt(self) -> PendingInterrupt:
        row = self.decided("api_flaky", {"order": "A-1"})
        assert run_turn(row.turn_id) == "suspended"
        return row

    def due(self) -> PendingInterrupt:
        return _overdue(self.pending())

    def diverged(self) -> PendingInterrupt:
        row = self.decided()
        other = {"calls": [scenes.call("api_refund", {"order": "B", "amount": 1})]}
        AgentTurn.objects.filter(pk=row.turn_id).update(input=other)
        assert run_turn(row.turn_id) == "needs_attention"
        return row

    # Rows of remote agents.

    def remote_pending(self) -> PendingInterrupt:
        number = PendingInterrupt.objects.count()
        receipt = services.raise_remote(
            self.owner,
            ref=f"ref-{number}",
            tool_name="refund",
            args=REFUND,
            via="test",
        )
        return PendingInterrupt.objects.get(pk=receipt.interrupt_id)

    def remote_claimed(self) -> PendingInterrupt:
        row = self.remote_pending()
        services.claim(row.pk, by=self.holder, via="test")
        return row

    def remote_decided(self) -> PendingInterrupt:
        row = self.remote_pending()
        services.decide(row.pk, {"type": "approve"}, by=None, via="test")
        return row

    def remote_consumed(self) -> PendingInterrupt:
        row = self.remote_decided()
        services.consume(row.pk, client=self.owner, key=KEY)
        return row

    def remote_resolved(self) -> PendingInterrupt:
        return self._reported("succeeded")

    def remote_in_doubt(self) -> PendingInterrupt:
        return self._reported("unknown")

    def remote_cancelled(self) -> PendingInterrupt:
        row = self.remote_pending()
        services.withdraw(row.pk, client=self.owner)
        return row

    def remote_due(self) -> PendingInterrupt:
        return _overdue(self.remote_pending())

    def _reported(self, status: Any) -> PendingInterrupt:
        row = self.remote_consumed()
        services.report_outcome(row.pk, client=self.owner, key=KEY, status=status)
        return row


STATUSES: dict[str, Callable[[Cast], PendingInterrupt]] = {
    "pending": Cast.pending,
    "pending, claimed": Cast.claimed,
    "pending, time over": Cast.due,
    "decided": Cast.decided,
    "decided, diverged": Cast.diverged,
    "resolved": Cast.resolved,
    "cancelled": Cast.cancelled,
    "in doubt": Cast.in_doubt,
}
REMOTE: dict[str, Callable[[Cast], PendingInterrupt]] = {
    "pending": Cast.remote_pending,
    "pending, claimed": Cast.remote_claimed,
    "pending, time over": Cast.remote_due,
    "decided": Cast.remote_decided,
    "decided, fetched": Cast.remote_consumed,
    "resolved": Cast.remote_resolved,
    "cancelled": Cast.remote_cancelled,
    "in doubt": Cast.remote_in_doubt,
}
TURNS: dict[str, Callable[[Cast], PendingInterrupt]] = {
    "suspended": Cast.pending,
    "ready": Cast.decided,
    "needs attention": Cast.diverged,
    "completed": Cast.resolved,
    "cancelled": Cast.cancelled,
}


def send(caller: APIClient, row: PendingInterrupt, action: str) -> Any:
    """Do one action on an interrupt."""
    if action in READS:
        return caller.get(scenes.url(row, "" if action == "read" else action))
    headers = {"Idempotency-Key": KEY if action != "consume" else "another"}
    url = scenes.url(row, action)
    return caller.post(url, BODIES[action], format="json", headers=headers)


def send_to_turn(caller: APIClient, row: PendingInterrupt, action: str) -> Any:
    """Do one action on the turn of an interrupt."""
    url = f"{scenes.TURNS}{row.turn_id}/"
    if action in TURN_READS:
        return caller.get(url if action == "read" else f"{url}{action}/")
    return caller.post(f"{url}{action}/", TURN_BODIES[action], format="json")


def told(answer: Any) -> str:
    """Return what an answer says: its status, and its code if it is a refusal."""
    if answer.status_code < 300:
        return str(answer.status_code)
    return f"{answer.status_code} {answer.json()['code']}"


def state() -> tuple[Any, ...]:
    """Return all that a refusal must leave as it is."""
    rows = PendingInterrupt.objects.order_by("pk").values_list(
        "pk", "status", "revision", "events_count", "assignee", "consumed_at"
    )
    turns = AgentTurn.objects.order_by("pk").values_list(
        "pk", "status", "undecided", "events_count", "restarts"
    )
    counts = tuple(model.objects.count() for model in TABLES)  # type: ignore[attr-defined]
    return tuple(rows), tuple(turns), counts


def _overdue(row: PendingInterrupt) -> PendingInterrupt:
    past = timezone.now() - timedelta(hours=1)
    PendingInterrupt.objects.filter(pk=row.pk).update(expires_at=past)
    return row

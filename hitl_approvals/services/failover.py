"""After a failover to a replica that lagged: nothing runs before a person looked.

What the old primary recorded last is not in this database, and so is not what ran. This
module makes no guess about it: it stops what would go on by itself, puts in doubt what
is known to have begun, and names what only somebody outside can find out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from hitl_approvals.enums import (
    OPEN_TURN,
    DecisionType,
    EventType,
    InterruptKind,
    InterruptStatus,
    StepStatus,
    ToolMode,
    TurnStatus,
)
from hitl_approvals.models import AgentTurn, DbNow, TurnStep, db_now_plus
from hitl_approvals.services import doubts, remote_failover, rows
from hitl_approvals.services.events import SYSTEM, head, turn_event
from hitl_approvals.services.recording import record_event
from hitl_approvals.services.transactions import run_atomic
from hitl_approvals.services.turns import NOT_LEASED

PAGE = 200
TRIES = 5
"""A turn that moves while it is being stopped is read again, this often."""
_STEP = ("turn_id", "name", "mode", "hard_deadline", "finished_at")
"""What is read of a step: its result may be long."""
_SOON = db_now_plus(timedelta(minutes=1))
STAYED = (TurnStatus.RUNNING, TurnStatus.SUSPENDED, TurnStatus.NEEDS_ATTENTION)
"""Statuses in which a turn may have been more on the old primary than it is here."""
LEAVES_TRACES = (ToolMode.UNSAFE, ToolMode.IDEMPOTENT, ToolMode.LOOKUP)
"""Modes whose effect is outside of this database, and so was not lost with it."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that may have happened after the last record; a person finds out."""

    what: str
    """`approved`, `waiting`, `under_way` or `recorded`."""
    turn_id: UUID | None
    """None for a remote agent's call."""
    subject_id: UUID
    tool: str
    mode: str
    text: str

    def as_dict(self) -> dict[str, str | None]:
        return {
            "what": self.what,
            "turn_id": None if self.turn_id is None else str(self.turn_id),
            "subject_id": str(self.subject_id),
            "tool": self.tool,
            "mode": self.mode,
            "text": self.text,
        }


def would_go_on() -> QuerySet[AgentTurn]:
    """Return the turns that run, or would without anybody's doing.

    One that only backs off is not among them: it cannot have been claimed after the
    last record of it, which says that it was not due yet.
    """
    return rows.turns().filter(Q(status=TurnStatus.RUNNING) | _owed(""))


def _owed(prefix: str) -> Q:
    """Return the condition that a turn could be claimed, by either server's clock."""
    due = Q(**{f"{prefix}status": TurnStatus.READY, f"{prefix}next_run_at__lte": _SOON})
    return due | Q(**{f"{prefix}blocked": True})


def hold_all(*, since: datetime) -> Iterator[UUID]:
    """Stop every turn that would go on; yield each one that was stopped.

    Workers lose them at their next write. `retry` lets one go on from its record.

    Args:
        since: The moment from which records may be missing.
    """
    for turn in _each(would_go_on().only("pk")):
        if any(_hold(turn.pk, since) for _try in range(TRIES)):
            yield turn.pk


def _hold(turn_id: UUID, since: datetime) -> bool:
    """Stop one turn; False if it moved meanwhile, or has nothing to go on with."""
    turn: Any = would_go_on().filter(pk=turn_id).annotate(db_now=DbNow()).first()
    if turn is None:
        return False
    error = (
        f"The database failed over: what this turn did after {_moment(since)} may not "
        "be on record. Find out what it may have done, then retry or cancel it."
    )
    event = turn_event(
        turn,
        EventType.TURN_NEEDS_ATTENTION,
        actor=SYSTEM,
        at=turn.db_now,
        status=TurnStatus.NEEDS_ATTENTION,
        detail={"error": error},
    )

    def work() -> bool:
        moved = (
            rows.turns()
            .filter(
                pk=turn.pk,
                status=turn.status,
                fence=turn.fence,
                events_count=turn.events_count,
            )
            .update(
                status=TurnStatus.NEEDS_ATTENTION,
                fence=F("fence") + 1,
                blocked=False,
                last_error=error,
                **NOT_LEASED,
                **head(event),
            )
        )
        if moved:
            record_event(event)
        return bool(moved)

    return run_atomic(work)


def doubt_all() -> int:
    """Put every call in doubt that began and can no longer be under way.

    A remote agent's is among them as soon as it is approved: it may have been fetched.
    """
    doubted = remote_failover.doubt_unfetched()
    while moved := doubts.raise_overdue(limit=PAGE):
        doubted += moved
    return doubted


def unknowns(*, since: datetime) -> Iterator[Unknown]:
    """Yield what this database cannot tell, for a person to find out.

    Args:
        since: The moment from which records may be missing.
    """
    yield from _under_way()
    yield from _not_on_record(since)
    yield from _recorded(since)
    yield from _remote(since)


def _under_way() -> Iterator[Unknown]:
    """Calls that began and whose deadline has not passed: the sweeper doubts them then."""
    begun = rows.steps().filter(status=StepStatus.STARTED)
    for step in _each(begun.only(*_STEP)):
        until = _moment(step.hard_deadline)
        text = f"began and may still be under way; in doubt after {until}"
        yield _of_step(step, "under_way", text)


def _not_on_record(since: datetime) -> Iterator[Unknown]:
    """Calls with no start on record that may have been approved or started since."""
    begun = (
        rows.steps()
        .filter(interrupt=OuterRef("pk"), generation=OuterRef("generation"))
        .exclude(status=StepStatus.NOT_STARTED)
    )
    approved = Q(
        status=InterruptStatus.DECIDED,
        decision__in=[DecisionType.APPROVE, DecisionType.EDIT],
    )
    calls = (
        rows.interrupts()
        .filter(
            approved | Q(status=InterruptStatus.PENDING),
            Q(turn__status__in=STAYED) | _owed("turn__"),
            kind=InterruptKind.TOOL_CALL,
        )
        .exclude(Exists(begun))
    )
    for row in _each(calls.only("turn_id", "tool_name", "policy", "status")):
        mode = str(row.policy.get("mode", ToolMode.UNSAFE))
        if mode not in LEAVES_TRACES or row.turn_id is None:
            continue
        pending = row.status == InterruptStatus.PENDING
        yield Unknown(
            "waiting" if pending else "approved",
            row.turn_id,
            row.pk,
            row.tool_name,
            mode,
            f"waits for a decision; one made after {_moment(since)} is lost, and the "
            "call may have run"
            if pending
            else f"approved, with no start on record; it may have run after "
            f"{_moment(since)}",
        )


def _recorded(since: datetime) -> Iterator[Unknown]:
    """Calls that are on record since then: not repeated, but other systems may differ."""
    done = rows.steps().filter(
        status=StepStatus.SUCCEEDED,
        mode__in=LEAVES_TRACES,
        finished_at__gte=since,
        turn__status__in=OPEN_TURN,
    )
    for step in _each(done.only(*_STEP)):
        text = f"recorded as done at {_moment(step.finished_at)}; will not be repeated"
        yield _of_step(step, "recorded", text)


def _remote(since: datetime) -> Iterator[Unknown]:
    """Calls of remote agents: who decided or fetched them since is not on record."""
    for row in _each(remote_failover.unfetched().only("tool_name")):
        text = f"approved; an agent may have fetched it after {_moment(since)}"
        yield Unknown("approved", None, row.pk, row.tool_name, "remote", text)
    for row in _each(remote_failover.waiting().only("tool_name")):
        text = (
            f"waits for a decision; one made after {_moment(since)} is lost, and an "
            "agent may have acted on it"
        )
        yield Unknown("waiting", None, row.pk, row.tool_name, "remote", text)


def _of_step(step: TurnStep, what: str, text: str) -> Unknown:
    return Unknown(what, step.turn_id, step.pk, step.name, step.mode, text)


def _each(found: QuerySet[Any]) -> Iterator[Any]:
    """Yield rows in the order of their ids, page by page."""
    page = list(found.order_by("pk")[:PAGE])
    while page:
        yield from page
        page = list(found.filter(pk__gt=page[-1].pk).order_by("pk")[:PAGE])


def _moment(at: datetime | None) -> str:
    if at is None:
        return "?"
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

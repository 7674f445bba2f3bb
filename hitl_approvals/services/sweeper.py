"""sweep(): what is owed is announced, what is dead is revoked, what is due happens.

Any number may run at once: every change is conditional on what was read, row by row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from itertools import takewhile
from typing import Any
from uuid import UUID

from django.db import Error
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from hitl_approvals import dispatchers, failpoints
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import (
    EventType,
    InterruptStatus,
    StepStatus,
    TurnStatus,
)
from hitl_approvals.models import AgentTurn, DbNow, db_now_plus
from hitl_approvals.services import (
    decisions,
    doubts,
    idempotency,
    marks,
    overdue,
    partings,
    rows,
    threads,
    upkeep,
)
from hitl_approvals.services.events import SYSTEM, head, turn_event
from hitl_approvals.services.recording import record_event, record_events
from hitl_approvals.services.reopening import lapse_row
from hitl_approvals.services.transactions import run_atomic
from hitl_approvals.services.turns import NOT_LEASED, backoff

logger = logging.getLogger("hitl_approvals")

BATCH = 200
"""Most rows of one kind that one pass looks at; the next pass goes on."""


@dataclass(slots=True)
class SweepReport:
    """How many rows one pass moved, by kind."""

    revoked: int = 0
    expired: int = 0
    lapsed: int = 0
    doubted: int = 0
    unblocked: int = 0
    unclaimed: int = 0
    announced: int = 0
    channels: int = 0
    given_up: int = 0
    forgotten: int = 0

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def sweep() -> SweepReport:
    """Make one pass over everything that time alone moves."""
    report = SweepReport()
    report.revoked = _revoke_dead_leases()
    report.expired = _expire()
    report.lapsed = _lapse() + _each(overdue.lapse, overdue.unfetched()[:BATCH])
    report.doubted = doubts.raise_overdue(limit=BATCH)
    report.doubted += _each(overdue.doubt, overdue.unreported()[:BATCH])
    report.unblocked = threads.unblock_orphans()
    report.unclaimed = _give_up_on_unclaimed()
    report.announced = _announce()
    report.given_up = upkeep.give_up_overdue(limit=BATCH)
    report.channels = upkeep.announce()
    report.forgotten = idempotency.forget_old(limit=BATCH)
    report.forgotten += upkeep.forget_old(limit=BATCH)
    marks.note_sweep(report.as_dict())
    return report


def _each(move: Callable[[Any], bool | int], found: Iterable[Any]) -> int:
    """Move row by row; one that cannot be moved now must not hold up the others."""
    moved = 0
    for row in found:
        try:
            moved += int(move(row))
        except Error:
            logger.warning("The sweeper left a row for later.", exc_info=True)
    return moved


def _revoke_dead_leases() -> int:
    dead = (
        rows.turns()
        .filter(status=TurnStatus.RUNNING, lease_until__lt=DbNow())
        .annotate(db_now=DbNow())
        .order_by("lease_until")[:BATCH]
    )
    return _each(_revoke, list(dead))


def _revoke(turn: Any) -> bool:
    """Take a turn from a worker that went silent, under the fence that was seen."""
    exhausted = turn.attempts >= turn.max_attempts
    error = f"The worker went silent in attempt {turn.attempts}."
    event = turn_event(
        turn,
        EventType.TURN_NEEDS_ATTENTION,
        actor=SYSTEM,
        at=turn.db_now,
        status=TurnStatus.NEEDS_ATTENTION,
        detail={"error": error},
    )
    changes: dict[str, Any] = (
        {"status": TurnStatus.NEEDS_ATTENTION, **head(event)}
        if exhausted
        else {
            "status": TurnStatus.READY,
            "next_run_at": db_now_plus(backoff(turn.attempts)),
            "dispatched_at": None,
        }
    )

    def work() -> bool:
        if not rows.take(rows.turns().filter(pk=turn.pk)):
            return False
        moved = (
            rows.turns()
            .filter(
                pk=turn.pk,
                status=TurnStatus.RUNNING,
                fence=turn.fence,
                lease_until__lt=DbNow(),
                events_count=turn.events_count,
            )
            .update(last_error=error, fence=F("fence") + 1, **NOT_LEASED, **changes)
        )
        if moved and exhausted:
            record_event(event)
        failpoints.reach("revoke.before_commit")
        return bool(moved)

    revoked = run_atomic(work)
    failpoints.reach("revoke.after_commit")
    return revoked


def _expire() -> int:
    due = (
        rows.interrupts()
        .filter(status=InterruptStatus.PENDING, expires_at__lte=DbNow())
        .order_by("expires_at")
        .values_list("pk", flat=True)[:BATCH]
    )
    return _each(decisions.expire, list(due))


def _lapse() -> int:
    """Send approvals that no run started in time back to a person."""
    begun = (
        rows.steps()
        .filter(interrupt=OuterRef("pk"), generation=OuterRef("generation"))
        .exclude(status=StepStatus.NOT_STARTED)
    )
    due = (
        rows.interrupts()
        .filter(
            status=InterruptStatus.DECIDED,
            # Never set in a turn; the index of these begins with it.
            consumed_at__isnull=True,
            execute_by__lte=DbNow(),
            turn__status=TurnStatus.READY,
        )
        .exclude(Exists(begun))
    )
    turn_ids = list(due.values_list("turn_id", flat=True).distinct()[:BATCH])
    return _each(partial(_lapse_turn, due), turn_ids)


class _Moved(Exception):
    """Fewer rows lapsed than were counted: undo, the next pass counts anew."""


def _lapse_turn(due: Any, turn_id: UUID) -> int:
    lapsed = list(due.filter(turn=turn_id).annotate(db_now=DbNow()).order_by("pk"))
    if not lapsed:
        return 0

    def work() -> int:
        if not rows.take(rows.turns().filter(pk=turn_id)):
            return 0
        moved = (
            rows.turns()
            .filter(pk=turn_id, status=TurnStatus.READY)
            .update(
                status=TurnStatus.SUSPENDED,
                undecided=len(lapsed),
                attempts=0,
                blocked=False,
            )
        )
        if moved != 1:
            return 0
        written = [lapse_row(row, row.db_now) for row in lapsed]
        if None in written:
            raise _Moved
        record_events([event for event in written if event is not None])
        return len(lapsed)

    try:
        return run_atomic(work)
    except _Moved:
        return 0


def _hint_waits() -> list[timedelta]:
    """Return the waits before each further announcement: doubling up to the longest."""
    waits = [hitl_settings.hint_after]
    while waits[-1] < hitl_settings.hint_max:
        waits.append(min(waits[-1] * 2, hitl_settings.hint_max))
    return waits


def _hint_due() -> Q:
    """Return the condition under which an owed run is announced (again)."""
    due = Q(dispatched_at=None)
    waits = _hint_waits()
    for hints, wait in enumerate(waits):
        counted = Q(hints=hints) if hints < len(waits) - 1 else Q(hints__gte=hints)
        due |= counted & Q(dispatched_at__lte=db_now_plus(-wait))
    return due


def _owed() -> QuerySet[AgentTurn]:
    return rows.turns().filter(
        status=TurnStatus.READY, blocked=False, next_run_at__lte=DbNow()
    )


def _announce() -> int:
    if hitl_settings.dispatcher == "worker":
        return 0
    announcer, announced = _Announcer(), 0
    # Workflows of cancelled turns last: nobody waits for those.
    for owed in (_owed(), partings.due()):
        found = list(owed.filter(_hint_due()).order_by("next_run_at")[:BATCH])
        announced += _each(announcer, takewhile(lambda _turn: announcer.heard, found))
    return announced


class _Announcer:
    """Announces owed runs until a hint does not go out.

    The broker is away for the others too, and waiting for it row by row would keep the
    next pass from everything else; that pass tries again.
    """

    def __init__(self) -> None:
        self.heard = True

    def __call__(self, turn: AgentTurn) -> bool:
        seen = rows.turns().filter(
            pk=turn.pk, status=turn.status, dispatched_at=turn.dispatched_at
        )

        def work() -> int:
            return rows.take(seen) and seen.update(dispatched_at=DbNow())

        if not run_atomic(work):
            return False
        failpoints.reach("announce.before_publish")
        self.heard = dispatchers.wake(turn.pk)
        if not self.heard:
            return False
        # Only a hint that went out counts: an unreachable broker must not make the
        # turn look as if no worker wanted it.
        rows.turns().filter(pk=turn.pk, status=turn.status).update(hints=F("hints") + 1)
        return True


def _hints_until_unclaimed() -> int:
    """Return how many announcements span the time after which a turn is unclaimed."""
    waits = _hint_waits()
    spent, hints = timedelta(), 0
    while spent < hitl_settings.unclaimed_after:
        spent += waits[min(hints, len(waits) - 1)]
        hints += 1
    return hints


def _give_up_on_unclaimed() -> int:
    """Show a person the owed runs that were announced again and again for nobody."""
    unclaimed = _owed().filter(
        next_run_at__lte=db_now_plus(-hitl_settings.unclaimed_after),
        hints__gte=_hints_until_unclaimed(),
    )
    return _each(_unclaimed, list(unclaimed.annotate(db_now=DbNow())[:BATCH]))


def _unclaimed(turn: Any) -> bool:
    error = (
        f"No worker takes agent `{turn.agent}` version {turn.agent_version}; "
        f"it was announced {turn.hints} times."
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
        if not rows.take(rows.turns().filter(pk=turn.pk)):
            return False
        moved = (
            rows.turns()
            .filter(
                pk=turn.pk,
                status=TurnStatus.READY,
                fence=turn.fence,
                hints=turn.hints,
                events_count=turn.events_count,
            )
            .update(status=TurnStatus.NEEDS_ATTENTION, last_error=error, **head(event))
        )
        if moved:
            record_event(event)
        return bool(moved)

    return run_atomic(work)

"""The life of a turn as rows: created, claimed, kept, released, ended."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.db import IntegrityError
from django.db.models import F, Q, QuerySet

from hitl_approvals import canonical, failpoints
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import EventType, InterruptStatus, TurnStatus
from hitl_approvals.exceptions import (
    LeaseLost,
)
from hitl_approvals.models import AgentTurn, DbNow, InterruptEvent, db_now_plus
from hitl_approvals.services import rows, threads
from hitl_approvals.services.clock import DbClock
from hitl_approvals.services.closing import cancel_leftovers
from hitl_approvals.services.events import SYSTEM, head, turn_event
from hitl_approvals.services.reading import with_db_now
from hitl_approvals.services.recording import record_events
from hitl_approvals.services.run import Run, fenced, flush, flushed, load
from hitl_approvals.services.transactions import run_alone, run_atomic
from hitl_approvals.statements import Where

NOT_LEASED: dict[str, Any] = {"lease_token": None, "lease_until": None}
# Made once: to find what was compiled, Django works out anew what a new one consists of.
_ONE_CLAIM_MORE: dict[str, Any] = {
    "fence": F("fence") + 1,
    "attempts": F("attempts") + 1,
}


def _claimable(runnable: Iterable[tuple[str, str]], **only: Any) -> Where[AgentTurn]:
    """Return the owed runs that this process may take."""
    mine = Q(pk__in=[])
    for agent, version in runnable:
        mine |= Q(agent=agent, agent_version=version)
    return rows.where(
        AgentTurn,
        mine,
        status=TurnStatus.READY,
        blocked=False,
        next_run_at__lte=DbNow(),
        attempts__lt=F("max_attempts"),
        **only,
    )


def owed(runnable: Iterable[tuple[str, str]], *, limit: int = 50) -> list[UUID]:
    """Return the runs that are owed and may be taken here, the longest owed first."""
    found: list[UUID] = _claimable(runnable).read(_longest_owed, limit=limit)
    return found


def _longest_owed(turns: QuerySet[AgentTurn]) -> QuerySet[AgentTurn, UUID]:
    return turns.order_by("next_run_at", "pk").values_list("pk", flat=True)


def claim(turn_id: UUID | str, runnable: Iterable[tuple[str, str]]) -> Run | None:
    """Take an owed run, or find nothing: then the hint is dropped, not an error.

    Args:
        turn_id: The turn that a hint or the sweeper named.
        runnable: The pairs of agent and version that this process has registered.

    Returns:
        The run with its journal, or None if there is nothing to do here.
    """
    token = uuid4()
    due = _claimable(runnable, pk=turn_id)

    def take() -> int:
        return due.update(
            status=TurnStatus.RUNNING,
            lease_token=token,
            lease_until=db_now_plus(hitl_settings.lease),
            active_thread=F("thread_key"),
            hints=0,
            **_ONE_CLAIM_MORE,
        )

    try:
        taken = run_alone(take)
    except IntegrityError:
        # Another turn holds the thread. Flagged outside the failed statement, and not if
        # this turn has got the thread meanwhile: nobody would ever unblock it then.
        rows.turns().filter(
            pk=turn_id, status=TurnStatus.READY, active_thread=None
        ).update(blocked=True)
        return None
    if not taken:
        return None
    turn = rows.where(AgentTurn, pk=turn_id, lease_token=token).first(with_db_now)
    if turn is None:
        return None
    failpoints.reach("claim.after_commit")
    run = Run(turn=turn, fence=turn.fence, clock=DbClock(turn.db_now), resumed=True)
    load(run)
    return run


def extend_lease(turn_id: UUID, fence: int) -> bool:
    """Extend the lease of a running turn; False is a lost lease."""
    own = rows.where(AgentTurn, pk=turn_id, status=TurnStatus.RUNNING, fence=fence)
    return own.update(lease_until=db_now_plus(hitl_settings.lease)) == 1


def backoff(attempts: int) -> timedelta:
    """Return the wait after `attempts` failed ones: doubling, bounded, with jitter."""
    first, most = hitl_settings.backoff, hitl_settings.backoff_max
    doubled: timedelta = first * 2 ** min(max(attempts - 1, 0), 30)
    return min(doubled, most) * random.uniform(0.8, 1.2)  # noqa: S311  spreads retries, no secret


def release(run: Run, error: str, *, not_before: datetime | None = None) -> TurnStatus:
    """Give the turn back after an error, or to a person when its attempts are used up.

    Args:
        run: The run that ends.
        error: What happened, for the operator.
        not_before: When the next attempt can achieve something; the backoff comes
            on top.

    Raises:
        LeaseLost: The turn is not this run's any more.
    """
    if run.turn.attempts >= run.turn.max_attempts:
        return need_attention(run, error)
    wait = backoff(run.turn.attempts)
    if not_before is not None:
        wait += max(not_before - run.clock.now(), timedelta())
    return _give_back(run, error, wait)


def put_off(run: Run, why: str, wait: timedelta, *, state: Any) -> TurnStatus:
    """Give the turn back because something outside is not there yet.

    That may take days and says nothing about the turn, so it uses up no attempt.

    Args:
        run: The run that ends.
        why: What is waited for, for the operator.
        wait: When to look again.
        state: The adapter's own state.

    Raises:
        LeaseLost: The turn is not this run's any more.
    """
    return _give_back(run, why, wait, attempts=F("attempts") - 1, state=state)


def _give_back(run: Run, error: str, wait: timedelta, **changes: Any) -> TurnStatus:
    def work() -> None:
        fenced(
            run,
            status=TurnStatus.READY,
            next_run_at=db_now_plus(wait),
            dispatched_at=None,
            last_error=error,
            **changes,
            **NOT_LEASED,
        )
        record_events(flush(run))
        failpoints.reach("release.before_commit")

    run_atomic(work, durable=True)
    failpoints.reach("release.after_commit")
    flushed(run)
    return TurnStatus.READY


def need_attention(run: Run, error: str) -> TurnStatus:
    """Stop the turn visibly: only a person moves it from here.

    Raises:
        LeaseLost: The turn is not this run's any more.
    """

    def work(event: InterruptEvent) -> None:
        fenced(
            run,
            Q(events_count=event.sequence),
            status=TurnStatus.NEEDS_ATTENTION,
            last_error=error,
            **NOT_LEASED,
            **head(event),
        )
        record_events([*flush(run), event])

    _write_with_event(
        run,
        work,
        EventType.TURN_NEEDS_ATTENTION,
        status=TurnStatus.NEEDS_ATTENTION,
        detail={"error": error},
    )
    flushed(run)
    return TurnStatus.NEEDS_ATTENTION


def _write_with_event(
    run: Run,
    work: Callable[[InterruptEvent], None],
    type_: EventType,
    **told: Any,
) -> None:
    """Write the end of a run with its event, at the end of the turn's chain.

    Whoever forks a turn while it runs makes its chain longer and takes nothing else of
    it; the event is then built anew.

    Raises:
        LeaseLost: The turn is not this run's any more.
    """
    while True:
        event = turn_event(run.turn, type_, actor=SYSTEM, at=run.clock.now(), **told)
        try:
            return run_atomic(partial(work, event), durable=True)
        except LeaseLost:
            longer = (
                rows.turns()
                .filter(pk=run.turn.pk, status=TurnStatus.RUNNING, fence=run.fence)
                .exclude(events_count=run.turn.events_count)
                .values_list("events_head", "events_count")
                .first()
            )
            if longer is None:
                raise
            run.turn.events_head, run.turn.events_count = longer


def complete(run: Run, output: Any) -> TurnStatus:
    """End the turn with its output.

    Raises:
        LeaseLost: The turn is not this run's any more.
        PayloadRejected: The output is not JSON, too large or too deep.
    """
    canonical.dumps(
        output,
        max_bytes=hitl_settings.max_payload_bytes,
        max_depth=hitl_settings.max_depth,
    )
    return _end(run, TurnStatus.COMPLETED, EventType.TURN_COMPLETED, output=output)


def fail(run: Run, error: str) -> TurnStatus:
    """End the turn because its agent says that it must not be retried.

    Raises:
        LeaseLost: The turn is not this run's any more.
    """
    return _end(run, TurnStatus.FAILED, EventType.TURN_FAILED, error=error)


def _end(run: Run, status: TurnStatus, type_: EventType, **changes: Any) -> TurnStatus:
    def work(event: InterruptEvent) -> None:
        fenced(
            run,
            Q(events_count=event.sequence),
            status=status,
            active_thread=None,
            finished_at=DbNow(),
            **changes,
            **NOT_LEASED,
            **head(event),
        )
        resolving = {one.interrupt.pk for one in run.resolutions}
        written = flush(run)
        left = [
            row.pk
            for row in run.interrupts.values()
            if row.status == InterruptStatus.DECIDED and row.pk not in resolving
        ]
        if left:
            # Read anew: a late result may have made a chain longer since the run began.
            written += cancel_leftovers(
                rows.interrupts().filter(pk__in=left), at=event.at
            )
        record_events([*written, event])
        threads.unblock_oldest(run.turn.thread_key)
        failpoints.reach("end.before_commit")

    _write_with_event(
        run,
        work,
        type_,
        status=status,
        detail={"error": changes["error"]} if changes.get("error") else None,
    )
    failpoints.reach("end.after_commit")
    flushed(run)
    return status


__all__ = [
    "LeaseLost",
    "backoff",
    "claim",
    "complete",
    "extend_lease",
    "fail",
    "need_attention",
    "owed",
    "put_off",
    "release",
]

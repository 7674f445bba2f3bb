"""The end of a batch: what waits for people, written by one fenced transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import (
    EventType,
    InterruptKind,
    InterruptStatus,
    StepStatus,
    TurnStatus,
)
from hitl_approvals.exceptions import LeaseLost
from hitl_approvals.models import (
    DEFAULT_QUEUE,
    DbNow,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
    db_now_plus,
)
from hitl_approvals.services import queues, rows
from hitl_approvals.services.events import SYSTEM, head, interrupt_event
from hitl_approvals.services.run import Run, fenced, flush, flushed, load
from hitl_approvals.services.transactions import run_atomic

NOTHING_DECIDED: dict[str, Any] = {
    "decision": None,
    "decision_args_text": None,
    "decision_digest": "",
    "decision_value": None,
    "reason": "",
    "decided_by": None,
    "decided_by_label": "",
    "decided_via": "",
    "decided_at": None,
    "decision_key": None,
    "decision_body": "",
    "execute_by": None,
}


@dataclass(slots=True)
class Request:
    """One call or question as it will stand on its row."""

    dedupe_key: str
    kind: InterruptKind
    position: int = 0
    queue: str | None = None
    expires_in: timedelta | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    """The remaining columns, by name."""


@dataclass(slots=True)
class Doubt:
    """A call whose fate is unknown: its step, and its interrupt or a request for one."""

    step: TurnStep
    interrupt: PendingInterrupt | None
    request: Request


def suspend(
    run: Run,
    *,
    requests: Sequence[Request] = (),
    doubts: Sequence[Doubt] = (),
    lapsed: Sequence[PendingInterrupt] = (),
    state: Any = None,
) -> list[UUID]:
    """Write what waits for people and suspend the turn if anything does.

    Decides by the rows as they are in the transaction, never from memory: another
    process may have recorded a call that this one believed to be in doubt.

    Args:
        run: The run that ends, unless nothing turns out to wait.
        requests: New interrupts, `pending`.
        doubts: Calls to be put `in_doubt`.
        lapsed: Approvals that were not used in time, to go back to a person.
        state: The adapter's own state, where it keeps one.

    Returns:
        The interrupts that wait now; empty if the run must go on from fresh rows.

    Raises:
        LeaseLost: The turn is not this run's any more.
    """
    known = queues.known(
        {one.queue for one in [*requests, *(d.request for d in doubts)] if one.queue}
    )
    at = run.clock.now()
    waiting: list[UUID] = []

    def work() -> None:
        waiting.clear()
        links: dict[UUID, UUID] = {}
        written: list[InterruptEvent] = []
        simple = not doubts and not lapsed
        closing = {
            "status": TurnStatus.SUSPENDED,
            "attempts": 0,
            "lease_token": None,
            "lease_until": None,
            **({} if state is None else {"state": state}),
        }
        if simple:
            fenced(run, undecided=len(requests), **closing)
        else:
            fenced(run)
        for row in lapsed:
            event = lapse_row(row, at)
            if event is not None:
                written.append(event)
                waiting.append(row.pk)
        known_doubts = [one for one in doubts if one.interrupt is not None]
        for doubt in sorted(known_doubts, key=_interrupt_id):
            event = _put_in_doubt(doubt, at)
            if event is not None:
                _mark_unknown(doubt.step, must=True)
                written.append(event)
                waiting.append(_interrupt_id(doubt))
        written += flush(run)
        new = [_row(run, one, known) for one in requests]
        for doubt in doubts:
            # A free call has no row yet; it gets one now, born in doubt.
            if doubt.interrupt is None and _mark_unknown(doubt.step):
                row = _row(run, doubt.request, known, InterruptStatus.IN_DOUBT)
                new.append(row)
                links[row.pk] = doubt.step.pk
        for row in new:
            event = _raised(row, at)
            row.events_head, row.events_count = event.hash, 1
            written.append(event)
        rows.interrupts().bulk_create(new)
        for interrupt_id, step_id in links.items():
            rows.steps().filter(pk=step_id).update(interrupt=interrupt_id)
        waiting.extend(row.pk for row in new)
        if not simple and waiting:
            fenced(run, undecided=len(waiting), **closing)
        rows.events().bulk_create(written)

    run_atomic(work, durable=True)
    flushed(run)
    if not waiting:
        load(run)
    return waiting


def _row(
    run: Run,
    request: Request,
    known: set[str],
    status: InterruptStatus = InterruptStatus.PENDING,
) -> PendingInterrupt:
    policy = dict(request.fields.get("policy", {}))
    queue = request.queue or DEFAULT_QUEUE
    if queue not in known:
        policy["queue_unknown"] = queue
        queue = DEFAULT_QUEUE
    wait = request.expires_in or hitl_settings.expires_in
    row = PendingInterrupt(
        turn=run.turn,
        dedupe_key=request.dedupe_key,
        kind=request.kind,
        position=request.position,
        agent=run.turn.agent,
        thread_id=run.turn.thread_id,
        queue_id=queue,
        status=status,
        **{**request.fields, "policy": policy},
    )
    if wait is not None and status == InterruptStatus.PENDING:
        row.expires_at = db_now_plus(wait)  # type: ignore[assignment]
    return row


def _raised(row: PendingInterrupt, at: datetime) -> InterruptEvent:
    in_doubt = row.status == InterruptStatus.IN_DOUBT
    return interrupt_event(
        row,
        EventType.IN_DOUBT if in_doubt else EventType.RAISED,
        actor=SYSTEM,
        at=at,
        status=row.status,
        detail={"tool": row.tool_name, "queue": row.queue_id},
    )


def lapse_row(row: PendingInterrupt, at: datetime) -> InterruptEvent | None:
    """Send an approval that was not used in time back to a person."""
    event = interrupt_event(
        row,
        EventType.LAPSED,
        actor=SYSTEM,
        at=at,
        status=InterruptStatus.PENDING,
        decision="",
        generation=row.generation + 1,
        revision=row.revision + 1,
        execute_by=row.execute_by,
        detail={"decision": row.decision, "decided_by": row.decided_by_label},
    )
    wait = row.policy.get("expires_in")
    fresh = hitl_settings.expires_in if wait is None else timedelta(seconds=wait)
    moved = (
        rows.interrupts()
        .filter(
            pk=row.pk,
            status=InterruptStatus.DECIDED,
            generation=row.generation,
            events_count=row.events_count,
            execute_by__lte=DbNow(),
        )
        .update(
            status=InterruptStatus.PENDING,
            generation=row.generation + 1,
            revision=row.revision + 1,
            expires_at=None if fresh is None else db_now_plus(fresh),
            **NOTHING_DECIDED,
            **head(event),
        )
    )
    return event if moved else None


def _interrupt_id(doubt: Doubt) -> UUID:
    assert doubt.interrupt is not None  # noqa: S101  narrows the type
    return doubt.interrupt.pk


def _put_in_doubt(doubt: Doubt, at: datetime) -> InterruptEvent | None:
    row = doubt.interrupt
    assert row is not None  # noqa: S101  narrows the type
    event = interrupt_event(
        row,
        EventType.IN_DOUBT,
        actor=SYSTEM,
        at=at,
        status=InterruptStatus.IN_DOUBT,
        detail={"step": str(doubt.step.pk), "fence": doubt.step.fence},
    )
    moved = (
        rows.interrupts()
        .filter(
            pk=row.pk,
            status=InterruptStatus.DECIDED,
            generation=row.generation,
            events_count=row.events_count,
        )
        .update(status=InterruptStatus.IN_DOUBT, **head(event))
    )
    return event if moved else None


def _mark_unknown(step: TurnStep, *, must: bool = False) -> bool:
    """Move `started → unknown` under the fence that was seen.

    Raises:
        LeaseLost: `must`, and the step moved although its interrupt had not.
    """
    moved = (
        rows.steps()
        .filter(pk=step.pk, status=StepStatus.STARTED, fence=step.fence)
        .update(status=StepStatus.UNKNOWN)
    )
    if must and not moved:
        raise LeaseLost
    return bool(moved)

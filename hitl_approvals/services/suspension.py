"""The end of a batch: what waits for people, written by one fenced transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from hitl_approvals import failpoints
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import (
    EventType,
    InterruptStatus,
    StepStatus,
    TurnStatus,
)
from hitl_approvals.exceptions import LeaseLost
from hitl_approvals.models import (
    DEFAULT_QUEUE,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
    db_now_plus,
)
from hitl_approvals.services import queues, rows
from hitl_approvals.services.events import SYSTEM, head, interrupt_event
from hitl_approvals.services.recording import record_events
from hitl_approvals.services.reopening import Reopening, lapse_row, reopen_row
from hitl_approvals.services.requests import Request, dedupe_key
from hitl_approvals.services.run import Run, fenced, flush, flushed, load
from hitl_approvals.services.transactions import run_atomic


@dataclass(slots=True)
class Doubt:
    """A call whose fate is unknown: its step, and its interrupt or a request for one."""

    step: TurnStep
    interrupt: PendingInterrupt | None
    request: Request | None
    """For the row that a call without an interrupt gets."""


def suspend(
    run: Run,
    *,
    requests: Sequence[Request] = (),
    doubts: Sequence[Doubt] = (),
    lapsed: Sequence[PendingInterrupt] = (),
    reopened: Sequence[Reopening] = (),
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
        reopened: Approvals that no longer fit the world or the tool, likewise.
        state: The adapter's own state, where it keeps one.

    Returns:
        The interrupts that wait now; empty if the run must go on from fresh rows.

    Raises:
        LeaseLost: The turn is not this run's any more.
    """
    asked = [*requests, *(doubt.request for doubt in doubts)]
    known = queues.known({one.queue for one in asked if one and one.queue})
    ending = _Ending(run, known, run.clock.now())
    closing = {
        "status": TurnStatus.SUSPENDED,
        "attempts": 0,
        "lease_token": None,
        "lease_until": None,
        **({} if state is None else {"state": state}),
    }

    def work() -> None:
        ending.reset()
        if not doubts and not lapsed and not reopened:
            # New requests always take effect, so one statement says it all.
            fenced(run, undecided=len(requests), **closing)
            ending.raise_new(requests, doubts)
        else:
            fenced(run)
            ending.send_back(lapsed)
            ending.reopen(reopened)
            ending.put_in_doubt(doubts)
            ending.raise_new(requests, doubts)
            if ending.waiting:
                fenced(run, undecided=len(ending.waiting), **closing)
        record_events(ending.events)
        failpoints.reach("suspend.before_commit")

    run_atomic(work, durable=True)
    failpoints.reach("suspend.after_commit")
    flushed(run)
    if not ending.waiting:
        load(run)
    return ending.waiting


class _Ending:
    """The rows and events of one end of a batch, built anew in every try."""

    def __init__(self, run: Run, known: set[str], at: datetime) -> None:
        self.run = run
        self.known = known
        self.at = at
        self.reset()

    def reset(self) -> None:
        self.events: list[InterruptEvent] = []
        self.waiting: list[UUID] = []

    def send_back(self, lapsed: Sequence[PendingInterrupt]) -> None:
        """Lapse approvals; those that somebody used after all stay as they are."""
        for row in sorted(lapsed, key=lambda row: row.pk):
            self._note(row.pk, lapse_row(row, self.at))

    def reopen(self, reopened: Sequence[Reopening]) -> None:
        """Ask again, with the call as it stands now."""
        for one in sorted(reopened, key=lambda one: one.interrupt.pk):
            self._note(one.interrupt.pk, reopen_row(one, self.at))

    def put_in_doubt(self, doubts: Sequence[Doubt]) -> None:
        """Put calls that have an interrupt in doubt, each with its step."""
        for doubt in sorted(doubts, key=_interrupt_id):
            if doubt.interrupt is None:
                continue
            event = _put_in_doubt(doubt.interrupt, doubt.step, self.at)
            if event is not None:
                _mark_unknown(doubt.step, must=True)
            self._note(doubt.interrupt.pk, event)

    def raise_new(self, requests: Sequence[Request], doubts: Sequence[Doubt]) -> None:
        """Write what the run still holds, then the new interrupts with their events."""
        self.events += flush(self.run)
        new = [row_of(self.run, one, self.known) for one in requests]
        links: dict[UUID, UUID] = {}
        for doubt in doubts:
            # A free call has no row yet; it gets one now, born in doubt.
            if doubt.request is not None and _mark_unknown(doubt.step):
                row = row_of(
                    self.run, doubt.request, self.known, InterruptStatus.IN_DOUBT
                )
                new.append(row)
                links[row.pk] = doubt.step.pk
        for row in new:
            event = _raised(row, self.at)
            row.events_head, row.events_count = event.hash, 1
            self._note(row.pk, event)
        rows.insert(new)
        for interrupt_id, step_id in links.items():
            rows.steps().filter(pk=step_id).update(interrupt=interrupt_id)
        for request, row in zip(requests, new, strict=False):
            if request.supersedes is not None:
                old = rows.interrupts().filter(pk=request.supersedes)
                old.update(superseded_by=row.pk)

    def _note(self, interrupt_id: UUID, event: InterruptEvent | None) -> None:
        if event is not None:
            self.events.append(event)
            self.waiting.append(interrupt_id)


def row_of(
    run: Run,
    request: Request,
    known: set[str],
    status: InterruptStatus = InterruptStatus.PENDING,
) -> PendingInterrupt:
    """Build the row of a request, in a queue that exists."""
    policy = dict(request.fields.get("policy", {}))
    queue = request.queue or DEFAULT_QUEUE
    if queue not in known:
        policy["queue_unknown"] = queue
        queue = DEFAULT_QUEUE
    wait = request.expires_in or hitl_settings.expires_in
    row = PendingInterrupt(
        turn=run.turn,
        dedupe_key=dedupe_key(run.turn.pk, request.kind, request.key),
        call_key=request.key,
        after_step=run.next_position() - 1,
        kind=request.kind,
        position=request.position,
        agent=run.turn.agent,
        thread_id=run.turn.thread_id,
        queue_id=queue,
        status=status,
        **{**request.fields, "policy": policy},
    )
    if wait is not None and status == InterruptStatus.PENDING:
        row.expires_at = db_now_plus(wait)
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


def _interrupt_id(doubt: Doubt) -> UUID:
    return doubt.step.pk if doubt.interrupt is None else doubt.interrupt.pk


def _put_in_doubt(
    row: PendingInterrupt, step: TurnStep, at: datetime
) -> InterruptEvent | None:
    event = interrupt_event(
        row,
        EventType.IN_DOUBT,
        actor=SYSTEM,
        at=at,
        status=InterruptStatus.IN_DOUBT,
        detail={"step": str(step.pk), "fence": step.fence},
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
        # Whoever settles the doubt has to know what was seen of the call.
        .update(status=StepStatus.UNKNOWN, error=step.error)
    )
    if must and not moved:
        raise LeaseLost
    return bool(moved)

"""The ledger around a tool body: started before it, recorded after it.

Never calls a tool itself, except inside the one transaction of a `transactional` tool.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import IntegrityError
from django.db.models import F, Q

from hitl_approvals import failpoints
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import (
    EventType,
    InterruptStatus,
    OutcomeStatus,
    StepKind,
    StepStatus,
    ToolMode,
)
from hitl_approvals.exceptions import LeaseLost
from hitl_approvals.models import (
    DbNow,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
    db_now_plus,
)
from hitl_approvals.models.turns import FINAL
from hitl_approvals.services import rows
from hitl_approvals.services.events import SYSTEM, head, interrupt_event
from hitl_approvals.services.recording import record_event, record_events
from hitl_approvals.services.run import (
    Run,
    fenced,
    flush,
    flushed,
    resolve,
)
from hitl_approvals.services.transactions import run_atomic
from hitl_approvals.statements import Condition


class ApprovalLapsed(Exception):
    """The approval's time passed before the call was started."""


class StepTaken(Exception):
    """The step is there already: a predecessor started or recorded it."""


def new_step(
    run: Run,
    *,
    key: str,
    name: str,
    args_text: str,
    args_digest: str,
    mode: ToolMode,
    interrupt: PendingInterrupt | None,
) -> TurnStep:
    """Build the ledger row of a call; the generation is its interrupt's."""
    return TurnStep(
        turn=run.turn,
        key=key,
        generation=1 if interrupt is None else interrupt.generation,
        position=run.next_position(),
        kind=StepKind.TOOL,
        name=name[:128],
        args_text=args_text if interrupt is None else None,
        args_digest=args_digest,
        mode=mode,
        fence=run.fence,
        interrupt=interrupt,
        status=StepStatus.STARTED,
    )


def may_start(interrupt: PendingInterrupt | None) -> list[Condition]:
    """Return the condition that the approval still stands and is still in time."""
    if interrupt is None:
        return []
    standing = rows.where(
        PendingInterrupt,
        Q(execute_by__isnull=True) | Q(execute_by__gt=DbNow()),
        pk=interrupt.pk,
        status=InterruptStatus.DECIDED,
        generation=interrupt.generation,
    )
    return [standing.there()]


def why_not(run: Run, interrupt: PendingInterrupt | None) -> Exception:
    """Tell a lost lease from a lapsed approval, in a transaction of its own."""
    still_mine = (
        rows.turns().filter(pk=run.turn.pk, status="running", fence=run.fence).exists()
    )
    if still_mine and interrupt is not None and has_lapsed(interrupt):
        return ApprovalLapsed()
    return LeaseLost()


def has_lapsed(interrupt: PendingInterrupt) -> bool:
    """Ask the database, whose clock alone counts, whether an approval's time passed."""
    return (
        rows.interrupts()
        .filter(
            pk=interrupt.pk,
            status=InterruptStatus.DECIDED,
            generation=interrupt.generation,
            execute_by__lte=DbNow(),
        )
        .exists()
    )


def start(run: Run, step: TurnStep, *, timeout: timedelta) -> None:
    """Commit that the call begins, before it does.

    Args:
        run: The run; its buffered pure steps are written too.
        step: A new row, or one that is `not_started`, or an `idempotent` one that a
            predecessor started.
        timeout: How long the body may take; sets the hard deadline.

    Raises:
        LeaseLost: The turn is not this run's any more.
        ApprovalLapsed: The approval's time has passed; nothing was started.
        StepTaken: The row is there already.
    """
    interrupt = step.interrupt
    deadline = db_now_plus(timeout + hitl_settings.deadline_margin)
    again = not step._state.adding  # noqa: SLF001  Django's own "is it in the table"
    # A call that was started before is not limited by the approval's time.
    conditions = (
        [] if step.status == StepStatus.STARTED and again else may_start(interrupt)
    )
    seen_fence, seen_status = step.fence, step.status
    # How long the other side honors a key counts from its first use.
    never_left = seen_status == StepStatus.NOT_STARTED
    first_start: dict[str, Any] = {"started_at": DbNow()} if never_left else {}

    def work() -> None:
        fenced(run, *conditions)
        if again:
            written = flush(run)
            taken = (
                rows.steps()
                .filter(pk=step.pk, status=seen_status, fence=seen_fence)
                .update(
                    status=StepStatus.STARTED,
                    fence=run.fence,
                    hard_deadline=deadline,
                    error="",
                    **first_start,
                )
            )
            if taken != 1:
                raise StepTaken
        else:
            step.hard_deadline = deadline
            written = flush(run, step)
        record_events(written)
        failpoints.reach("gate.before_commit")

    try:
        run_atomic(work, durable=True)
    except IntegrityError:
        raise StepTaken from None
    except LeaseLost:
        run.check_lease()
        raise why_not(run, interrupt) from None
    failpoints.reach("gate.after_commit")
    step.status = StepStatus.STARTED
    step.fence = run.fence
    # The column holds the database's own sum; here it is as good as the clock.
    step.hard_deadline = run.clock.now() + timeout + hitl_settings.deadline_margin
    flushed(run, *([] if again else [step]))


def record(
    run: Run,
    step: TurnStep,
    *,
    status: StepStatus,
    outcome: OutcomeStatus,
    digest_run: str,
    result: Any = None,
    error: str = "",
) -> bool:
    """Record what a call did and resolve its interrupt, in one transaction.

    Asks for the own fence and generation on the step, not for the lease: a worker whose
    turn was taken over may still record its own call, and start none.

    Returns:
        False if the row had moved on: then only an event `late_result` was written.
    """
    interrupt = step.interrupt

    def work() -> InterruptEvent | None:
        event = None
        if interrupt is not None:
            event = resolve(
                run, interrupt, outcome, digest_run=digest_run, result=result
            )
            if event is None:
                raise _Late
        started = rows.where(
            TurnStep, pk=step.pk, status=StepStatus.STARTED, fence=run.fence
        )
        moved = started.update(
            status=status, result=result, error=error, finished_at=DbNow()
        )
        if moved != 1:
            raise _Late
        if event is not None:
            record_event(event)
        failpoints.reach("record.before_commit")
        return event

    try:
        event = run_atomic(work, durable=True)
    except _Late:
        _late_result(run, step, status)
        return False
    failpoints.reach("record.after_commit")
    step.status, step.result, step.error = status, result, error
    if interrupt is not None and event is not None:
        note_resolved(interrupt, event)
    return True


def adopt(run: Run, step: TurnStep) -> None:
    """Take over a predecessor's started step, so that this run may record it.

    Raises:
        LeaseLost: The turn is not this run's any more, or the step moved.
    """

    def work() -> None:
        fenced(run)
        written = flush(run)
        taken = (
            rows.steps()
            .filter(pk=step.pk, status=StepStatus.STARTED, fence=step.fence)
            .update(fence=run.fence)
        )
        if taken != 1:
            raise LeaseLost
        record_events(written)

    run_atomic(work, durable=True)
    flushed(run)
    step.fence = run.fence


class _Late(Exception):
    """The step or its interrupt is not as this worker left it."""


def note_resolved(interrupt: PendingInterrupt, event: InterruptEvent) -> None:
    interrupt.status = InterruptStatus.RESOLVED
    interrupt.events_head, interrupt.events_count = event.hash, event.sequence + 1


def _late_result(run: Run, step: TurnStep, status: StepStatus) -> None:
    """Write down that a call ended after somebody had already dealt with it."""
    # From the row: a free call gets its interrupt only when somebody doubts it.
    interrupt_id = (
        rows.steps().filter(pk=step.pk).values_list("interrupt", flat=True).first()
    )
    if interrupt_id is None:
        return

    def work() -> None:
        # Whoever closes the turn reads the chains while it holds the turn's row.
        rows.turns().filter(pk=run.turn.pk).update(hints=F("hints"))
        fresh = rows.interrupts().get(pk=interrupt_id)
        event = interrupt_event(
            fresh,
            EventType.LATE_RESULT,
            actor=SYSTEM,
            at=run.clock.now(),
            status=fresh.status,
            detail={"step": str(step.pk), "step_status": str(status)},
        )
        chained = (
            rows.interrupts()
            .filter(pk=fresh.pk, events_count=fresh.events_count)
            .update(**head(event))
        )
        if chained != 1:
            raise _Late
        record_event(event)

    for _attempt in range(5):
        try:
            run_atomic(work, durable=True)
        except _Late:
            continue
        return


def not_started(run: Run, step: TurnStep, error: str) -> None:
    """Record that the body certainly did nothing; the approval stays usable.

    If the turn was closed meanwhile nobody will ask again: the interrupt is withdrawn
    in the same transaction.
    """
    interrupt = step.interrupt

    def work() -> None:
        # Takes the turn's row, whatever its status: a cancel that waits behind us must
        # see the step as it will be, and one that was first must be seen here.
        turn = rows.turns().filter(pk=run.turn.pk)
        turn.update(hints=F("hints"))
        closed = turn.get().status in FINAL
        own = rows.steps().filter(
            pk=step.pk, status=StepStatus.STARTED, fence=run.fence
        )
        # Not if a successor repeats the call by now: that one may be under way.
        if closed and interrupt is not None and own.exists():
            event = interrupt_event(
                interrupt,
                EventType.CANCELLED,
                actor=SYSTEM,
                at=run.clock.now(),
                status=InterruptStatus.CANCELLED,
                detail={"outcome": str(OutcomeStatus.NOT_RUN)},
            )
            moved = (
                rows.interrupts()
                .filter(
                    pk=interrupt.pk,
                    status=InterruptStatus.DECIDED,
                    events_count=interrupt.events_count,
                )
                .update(
                    status=InterruptStatus.CANCELLED,
                    outcome_status=OutcomeStatus.NOT_RUN,
                    **head(event),
                )
            )
            if moved:
                record_event(event)
        own.update(status=StepStatus.NOT_STARTED, error=error)

    run_atomic(work, durable=True)
    step.status, step.error = StepStatus.NOT_STARTED, error


def record_clean_failure(
    run: Run, step: TurnStep, *, error: str, text: str, digest_run: str
) -> None:
    """Record that a call failed with nothing done, and resolve its interrupt as failed.

    For calls that have no `started` row: transactional ones and those that only read.

    Raises:
        LeaseLost: The turn is not this run's any more.
    """
    interrupt = step.interrupt
    step.status, step.result, step.error = StepStatus.FAILED, {"text": text}, error
    step.finished_at = DbNow()
    if interrupt is not None:
        run.resolve_later(interrupt, OutcomeStatus.FAILED, digest_run)

    def work() -> None:
        fenced(run)
        record_events(flush(run, step))

    run_atomic(work, durable=True)
    flushed(run, step)

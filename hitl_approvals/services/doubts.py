"""Doubts of turns that nobody runs any more: raised by the sweeper, shown to a person."""

from __future__ import annotations

from typing import Any

from django.db.models import F

from hitl_approvals import canonical
from hitl_approvals.enums import (
    EventType,
    InterruptKind,
    InterruptStatus,
    StepStatus,
    TurnStatus,
)
from hitl_approvals.models import DEFAULT_QUEUE, DbNow, PendingInterrupt, TurnStep
from hitl_approvals.models.turns import FINAL
from hitl_approvals.registry import registry
from hitl_approvals.services import queues, rows
from hitl_approvals.services.events import SYSTEM, head, interrupt_event
from hitl_approvals.services.recording import record_event
from hitl_approvals.services.requests import dedupe_key
from hitl_approvals.services.transactions import alias, run_atomic

NOBODY_RUNS = [*FINAL, TurnStatus.NEEDS_ATTENTION]


class _Moved(Exception):
    """Step and interrupt did not move together: undo, the next pass looks again."""


def raise_overdue(*, limit: int) -> int:
    """Put every call in doubt that is past its deadline in a closed or stuck turn."""
    overdue = (
        rows.steps()
        .filter(
            status=StepStatus.STARTED,
            hard_deadline__lt=DbNow(),
            turn__status__in=NOBODY_RUNS,
        )
        .select_related("turn", "interrupt")
        .annotate(db_now=DbNow())
        .order_by("hard_deadline")
    )
    return sum(_raise(step) for step in list(overdue[:limit]))


def _raise(step: Any) -> bool:
    row = step.interrupt
    born = row is None
    subject = born_in_doubt(step, queues.known([])) if row is None else row

    def work() -> bool:
        if not rows.take(rows.turns().filter(pk=step.turn_id)):
            return False
        if not born and not rows.take(rows.interrupts().filter(pk=subject.pk)):
            return False
        asserted = (
            rows.turns()
            .filter(pk=step.turn_id, status=step.turn.status)
            .update(hints=F("hints"))
        )
        if not asserted:
            return False
        event = interrupt_event(
            subject,
            EventType.IN_DOUBT,
            actor=SYSTEM,
            at=step.db_now,
            status=InterruptStatus.IN_DOUBT,
            detail={"step": str(step.pk), "fence": step.fence},
        )
        if born:
            subject.events_head, subject.events_count = event.hash, 1
            subject.save(using=alias(), force_insert=True)
        else:
            moved = (
                rows.interrupts()
                .filter(
                    pk=subject.pk,
                    status=InterruptStatus.DECIDED,
                    generation=step.generation,
                    events_count=subject.events_count,
                )
                .update(status=InterruptStatus.IN_DOUBT, **head(event))
            )
            if not moved:
                return False
        marked = (
            rows.steps()
            .filter(pk=step.pk, status=StepStatus.STARTED, fence=step.fence)
            .update(status=StepStatus.UNKNOWN, interrupt=subject.pk)
        )
        if not marked:
            raise _Moved
        record_event(event)
        return True

    try:
        return run_atomic(work)
    except _Moved:
        return False


def born_in_doubt(step: TurnStep, known: set[str]) -> PendingInterrupt:
    """Build the row of a call that nobody had to approve, from its ledger entry."""
    tool = registry.tools.get(step.name)
    queue = DEFAULT_QUEUE if tool is None or tool.queue not in known else tool.queue
    text = step.args_text or "{}"
    tags = [] if tool is None else list(tool.tags)
    return PendingInterrupt(
        turn_id=step.turn_id,
        dedupe_key=dedupe_key(step.turn_id, InterruptKind.TOOL_CALL, step.key),
        call_key=step.key,
        after_step=step.position - 1,
        kind=InterruptKind.TOOL_CALL,
        position=step.position,
        agent=step.turn.agent,
        thread_id=step.turn.thread_id,
        tool_name=step.name,
        tool_description="" if tool is None else tool.description,
        args_text=text,
        args=canonical.filterable(canonical.stored(text)),
        args_digest=canonical.digest(text),
        requested_digest=step.args_digest,
        args_schema=None if tool is None else tool.signature.args_schema,
        schema_digest="" if tool is None else tool.signature.schema_digest,
        context={"asked": step.turn.input, "messages": [], "metadata": {}},
        tags=tags,
        # Run again, it may lapse; then it is decided like any other call.
        allowed_decisions=list(
            ("approve", "reject") if tool is None else tool.allowed_decisions
        ),
        policy={
            **({} if tool is None else tool.declared()),
            "gated": False,
            "why": "no approval needed",
            "tags": tags,
            "mode": step.mode,
        },
        queue_id=queue or DEFAULT_QUEUE,
        status=InterruptStatus.IN_DOUBT,
    )

"""Drives turns in one process, and moves the times that rows wait for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from hitl_approvals import Approve, run_turn, services, start_turn
from hitl_approvals.decisions import Decision
from hitl_approvals.enums import InterruptStatus, StepStatus
from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
    db_now_plus,
)
from hitl_approvals.types import DecisionReceipt

PAST = db_now_plus(timedelta(seconds=-2))
WAITING = (InterruptStatus.PENDING, InterruptStatus.IN_DOUBT)


def begin(*replies: list[Any], agent: str = "scripted", **options: Any) -> AgentTurn:
    """Start the scripted agent here and run it to its first pause or its end."""
    return start_turn(agent, list(replies), run=True, **options)


def begin_owed(*replies: list[Any], **options: Any) -> AgentTurn:
    """Start the scripted agent for whoever claims it."""
    return start_turn("scripted", list(replies), **options)


def rows(turn: AgentTurn) -> list[PendingInterrupt]:
    """Return the interrupts of a turn in the model's order."""
    found = PendingInterrupt.objects.filter(turn=turn.pk)
    return list(found.order_by("position", "requested_at", "pk"))


def waiting(turn: AgentTurn) -> list[PendingInterrupt]:
    return [row for row in rows(turn) if row.status in WAITING]


def only(turn: AgentTurn) -> PendingInterrupt:
    """Return the one interrupt of a turn."""
    (row,) = rows(turn)
    return row


def steps(turn: AgentTurn, *, kind: str = "tool") -> list[TurnStep]:
    found = TurnStep.objects.filter(turn=turn.pk, kind=kind)
    return list(found.order_by("position", "generation"))


def decide(
    row: PendingInterrupt | UUID,
    decision: Decision | Mapping[str, Any] | None = None,
    **options: Any,
) -> DecisionReceipt:
    """Decide as trusted code; an approval unless the test says otherwise."""
    pk = row.pk if isinstance(row, PendingInterrupt) else row
    options = {"by": None, "via": "test", **options}
    return services.decide(pk, Approve() if decision is None else decision, **options)


def settle(row: PendingInterrupt, answer: Any, **options: Any) -> PendingInterrupt:
    """Settle a doubt as trusted code unless the test says otherwise."""
    return services.settle(row.pk, answer, **{"by": None, "via": "test", **options})


def resume(turn: AgentTurn) -> str:
    """Let the backoff pass, run the turn here and read it anew."""
    make_due(turn)
    outcome = run_turn(turn.pk)
    turn.refresh_from_db()
    return outcome


def decide_and_resume(turn: AgentTurn, decision: Any = None, **options: Any) -> str:
    """Decide all that waits in the same way, and resume."""
    for row in waiting(turn):
        decide(row, decision, **options)
    return resume(turn)


def make_due(turn: AgentTurn) -> None:
    AgentTurn.objects.filter(pk=turn.pk, status="ready").update(next_run_at=PAST)


def go_silent(turn: AgentTurn) -> None:
    """Let the lease lapse and the sweeper take the turn from its dead worker."""
    AgentTurn.objects.filter(pk=turn.pk).update(lease_until=PAST)
    services.sweep()
    turn.refresh_from_db()


def recover(turn: AgentTurn) -> str:
    """Come back after a crash: lease lapsed, turn revoked, run anew."""
    go_silent(turn)
    return resume(turn)


def pass_deadlines(turn: AgentTurn) -> None:
    """Let the time pass in which a call may still be under way."""
    TurnStep.objects.filter(turn=turn.pk, hard_deadline__isnull=False).update(
        hard_deadline=PAST
    )


def pass_execute_by(row: PendingInterrupt) -> None:
    """Let the time pass in which an approved call may start."""
    PendingInterrupt.objects.filter(pk=row.pk).update(execute_by=PAST)


def pass_expires_at(row: PendingInterrupt) -> None:
    """Let the time to decide pass."""
    PendingInterrupt.objects.filter(pk=row.pk).update(expires_at=PAST)


def events(subject: AgentTurn | PendingInterrupt) -> list[str]:
    """Return the types of a row's own events, oldest first."""
    return [event.type for event in full_events(subject)]


def full_events(subject: AgentTurn | PendingInterrupt) -> list[InterruptEvent]:
    return list(
        InterruptEvent.objects.filter(subject_id=subject.pk).order_by("sequence")
    )


def step_statuses(turn: AgentTurn) -> list[str]:
    return [step.status for step in steps(turn)]


def started_steps(turn: AgentTurn) -> int:
    return step_statuses(turn).count(StepStatus.STARTED)

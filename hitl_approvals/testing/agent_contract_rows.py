"""Moves what rows wait for, so that no test has to. Nothing but tests may do so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hitl_approvals import services
from hitl_approvals.models import (
    AgentTurn,
    PendingInterrupt,
    TurnStep,
    db_now_plus,
)

PAST = db_now_plus(timedelta(seconds=-2))
LONG_AGO = db_now_plus(timedelta(days=-2))


def make_due(turn: AgentTurn) -> None:
    """Let the wait before the next attempt be over."""
    AgentTurn.objects.filter(pk=turn.pk, status="ready").update(next_run_at=PAST)


def go_silent(turn: AgentTurn) -> None:
    """Let the lease of a worker that is gone run out, and the sweeper see it."""
    AgentTurn.objects.filter(pk=turn.pk).update(lease_until=PAST)
    services.sweep()


def go_unclaimed(turn: AgentTurn) -> None:
    """Let a run have been announced for a long time, and the sweeper see it."""
    AgentTurn.objects.filter(pk=turn.pk).update(next_run_at=LONG_AGO, hints=10_000)
    services.sweep()


def pass_deadlines(turn: AgentTurn) -> None:
    """Let the time be over in which a call may still be under way."""
    TurnStep.objects.filter(turn=turn.pk, hard_deadline__isnull=False).update(
        hard_deadline=PAST
    )


def pass_expires_at(row: PendingInterrupt) -> None:
    """Let the time to decide be over."""
    PendingInterrupt.objects.filter(pk=row.pk).update(expires_at=PAST)


def pass_execute_by(row: PendingInterrupt) -> None:
    """Let the time be over in which an approved call may start."""
    PendingInterrupt.objects.filter(pk=row.pk).update(execute_by=PAST)


def rewrite_state(turn: AgentTurn, **changes: Any) -> None:
    """Let the kept state of a turn say something else, as another release would."""
    AgentTurn.objects.filter(pk=turn.pk).update(state={**turn.state, **changes})

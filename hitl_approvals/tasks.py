"""Celery's entry points: pinned names, ids only, one call each. Never retried here."""

from __future__ import annotations

from typing import Any

from celery import shared_task

from hitl_approvals import engine, services
from hitl_approvals.dispatchers.celery import RUN_TURN, SWEEP


@shared_task(name=RUN_TURN, ignore_result=True, acks_late=False, max_retries=0)
def run_turn(turn_id: str, **_later: Any) -> str:
    """Run an owed turn; a hint that finds nothing to do is dropped, not an error."""
    return engine.run_turn(turn_id)


@shared_task(name=SWEEP, ignore_result=True, acks_late=False, max_retries=0)
def sweep(**_later: Any) -> dict[str, int]:
    """Make one pass of the sweeper."""
    return services.sweep().as_dict()

"""Celery's entry points: pinned names, ids only, one call each. Never retried here.

Importing this module, which `autodiscover_tasks()` does, also makes every worker sweep.
"""

from __future__ import annotations

from typing import Any

from celery import shared_task
from celery.signals import worker_ready, worker_shutdown, worker_shutting_down

from hitl_approvals import dispatchers, engine, services
from hitl_approvals.dispatchers.celery import DELIVER, RUN_TURN, SWEEP
from hitl_approvals.services import deliveries
from hitl_approvals.sweeping import Sweeper

_LAST_PASS_SECONDS = 5

_sweeper = Sweeper()


@shared_task(name=RUN_TURN, ignore_result=True, acks_late=False, max_retries=0)
def run_turn(turn_id: str, **_later: Any) -> str:
    """Run an owed turn; a hint that finds nothing to do is dropped, not an error."""
    return engine.run_turn(turn_id)


@shared_task(name=SWEEP, ignore_result=True, acks_late=False, max_retries=0)
def sweep(**_later: Any) -> dict[str, int]:
    """Make one pass of the sweeper."""
    return services.sweep().as_dict()


@shared_task(name=DELIVER, ignore_result=True, acks_late=False, max_retries=0)
def deliver(channel: str, **_later: Any) -> int:
    """Send what a channel is owed for a while, then let other tasks have their turn."""
    attempts = deliveries.drain(channel)
    if attempts and deliveries.is_due(channel):
        dispatchers.deliver([channel])
    return attempts


@worker_ready.connect
def _start_sweeping(**_signal: Any) -> None:
    """Sweep in the worker's main process; sent anew after each reconnection."""
    _sweeper.start()


@worker_shutting_down.connect
def _stop_sweeping(**_signal: Any) -> None:
    # Sent from within a signal handler, where waiting could deadlock.
    _sweeper.stop()


@worker_shutdown.connect
def _end_sweeping(**_signal: Any) -> None:
    _sweeper.stop()
    _sweeper.join(_LAST_PASS_SECONDS)

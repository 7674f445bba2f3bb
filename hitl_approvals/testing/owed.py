"""Runs owed turns in a test's own process."""

from __future__ import annotations

from hitl_approvals import engine
from hitl_approvals.registry import registry
from hitl_approvals.services import turns


def run_owed(*, limit: int = 100) -> list[str]:
    """Run what is owed now, as a worker would, until nothing is or the limit is met.

    Returns:
        The outcome of each run, in order.

    Raises:
        UnsafeContext: A transaction is open; mark the test as transactional.
    """
    outcomes: list[str] = []
    while len(outcomes) < limit:
        due = turns.owed(registry.runnable(), limit=1)
        if not due:
            break
        outcomes.append(engine.run_turn(due[0]))
    return outcomes

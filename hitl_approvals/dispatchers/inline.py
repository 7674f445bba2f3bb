"""Does what is owed at once, in the committing process. For tests; no heartbeat."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from uuid import UUID


def wake(turn_id: UUID) -> bool:
    """Run the turn here; by dotted path, since the engine stands above this layer."""
    import_module("hitl_approvals.engine").run_turn(turn_id)
    return True


def deliver(channels: Sequence[str]) -> bool:
    """Send what is owed from here; by dotted path, since services stand above this layer."""
    deliveries = import_module("hitl_approvals.services.deliveries")
    for channel in channels:
        deliveries.drain(channel)
    return True

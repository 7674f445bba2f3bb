"""What the check counted, and whether it is what was promised. Pure."""

from __future__ import annotations

from dataclasses import dataclass

STUCK = frozenset({"needs_attention", "failed", "cancelled"})
"""Statuses of a turn that goes on no more by itself and has no answer."""


@dataclass(frozen=True)
class Verdict:
    """One refund, resolved once, although the worker was killed twice."""

    effects: int
    """Rows of refunds."""
    resolved: int
    """Audit events that say `resolved`."""
    kills: int
    """Workers that ended by SIGKILL."""
    seconds: float
    completed: bool
    """The turn came to its end."""

    @property
    def holds(self) -> bool:
        """True if the promise was kept, and had been put to the test."""
        counts = (self.effects, self.resolved, self.kills)
        return self.completed and counts == (1, 1, 2)

    def __str__(self) -> str:
        """Return the check's last line."""
        return (
            f"demo check: effects={self.effects} resolved={self.resolved} "
            f"kills={self.kills} seconds={self.seconds:.0f}"
        )

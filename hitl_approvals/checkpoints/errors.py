"""What the saver refuses. A turn that meets one of these needs a person's attention."""

from __future__ import annotations

from hitl_approvals.exceptions import RunDiverged


class CheckpointTooNew(RunDiverged):
    """A newer LangGraph wrote this checkpoint; this one cannot go on from it."""


class TypeNotAllowed(RunDiverged):
    """The state holds a value of a type that checkpoints may not hold."""


class TypeChanged(RunDiverged):
    """The state holds a value whose class is gone, or takes other values now."""

"""What the gate gives back: the result of one call, and the outcome of a whole run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hitl_approvals.exceptions import InterruptSuspended

SUCCEEDED, FAILED = "succeeded", "failed"
"""Values of `ToolResult.status`."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What became of one call. A failure is a value here, never an exception."""

    status: str
    value: Any = None
    """What the tool returned."""
    error: Exception | None = None
    """`ApprovalRejected`, `InterruptSuspended`, or what the tool raised."""
    interrupt_id: str | None = None
    """The interrupt that the call waits for, or was decided by."""

    @property
    def suspended(self) -> bool:
        """Whether the call waits for a person."""
        return isinstance(self.error, InterruptSuspended)

    def unwrap(self) -> Any:
        """Return the value, or raise what went wrong: a call as plain functions make it.

        Raises:
            Exception: The error of a failed call.
        """
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(frozen=True, slots=True)
class Execution:
    """What became of one run of an agent."""

    output: Any = None
    """What the agent returned; None if it did not get to its end."""
    error: Exception | None = None
    """`InterruptSuspended` for a run that waits, or what the agent raised."""
    interrupt_id: str | None = None
    """What the run waits for."""

    @property
    def suspended(self) -> bool:
        """Whether the run waits for a person."""
        return isinstance(self.error, InterruptSuspended)


def suspended_result(interrupt_id: str) -> ToolResult:
    """Return the failed result of a call that waits."""
    return ToolResult(
        FAILED, error=InterruptSuspended(interrupt_id), interrupt_id=interrupt_id
    )


def failed_result(error: Exception, interrupt_id: str | None = None) -> ToolResult:
    """Return the failed result of a call that went wrong or was refused."""
    return ToolResult(FAILED, error=error, interrupt_id=interrupt_id)

"""What the caller of an executor is told. Holds no behavior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class _NoValue:
    """Stands for "no answer was given": every JSON value is one, None included."""

    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE: Any = _NoValue()


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """Where a thread stands after a run."""

    thread_id: str
    status: str
    """`completed` or `suspended`; on Django any status of a turn."""
    output: Any = None
    """What the last node returned; None while the thread is not completed."""
    interrupted: bool = False
    """Whether a person has to answer before the thread goes on."""
    interrupt_payload: Any = None
    """What the node asked; for a gated tool call `{"tool", "args"}`."""
    interrupt_id: str | None = None
    """Pass it to `resume` to answer this one and no later one."""
    waiting: int = 0
    """How many answers are missing."""
    error: str = ""
    """What stands in the way, if it is something else than a missing answer."""

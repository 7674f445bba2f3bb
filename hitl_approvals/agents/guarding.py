"""Runs an agent's own code with its gate in place, and believes no swallowed stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hitl_approvals.agents.turn import Turn
from hitl_approvals.exceptions import InterruptSuspended, RunDiverged
from hitl_approvals.registry import current_gate


def guarded(turn: Turn, work: Callable[[], Any]) -> Any:
    """Return what the agent's code returns.

    Raises:
        InterruptSuspended: It stopped for a person, or swallowed that it did.
        RunDiverged: It stopped for an interrupt that is none of this turn.
        Exception: What it raised, or the stop that its own `except` turned into
            another error.
    """
    gate = turn._gate  # noqa: SLF001  the turn is this package's own
    token = current_gate.set(gate)
    output = None
    try:
        output = work()
    except InterruptSuspended as stop:
        if gate.stopped is None:
            # Nobody who decides that one would make this turn go on.
            raise RunDiverged(
                f"The agent stopped for interrupt {stop.interrupt_id}, which is none of "
                "this turn. Ask through the turn, or catch what another gate raises."
            ) from stop
    except Exception:
        # An agent's own `except` may have turned the stop into another error.
        if gate.stopped is None:
            raise
    finally:
        current_gate.reset(token)
    if gate.stopped is not None:
        raise gate.stopped
    return output

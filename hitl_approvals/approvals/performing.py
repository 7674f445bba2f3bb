"""Running an agent of any kind inside a run, and saying what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_approvals.approvals.outcomes import Execution
from hitl_approvals.approvals.runs import Run
from hitl_approvals.approvals.steps import Step, Steps
from hitl_approvals.exceptions import InterruptSuspended


def perform(
    run: Run, agent: Any, given: Any, options: Mapping[str, Any]
) -> Steps[Execution]:
    """Run an agent; what it raises is an outcome, the bug of a handler is raised.

    Raises:
        TypeError: It is no agent.
        Exception: The bug of a handler.
    """
    step = step_of(agent, given, options)
    output, error = None, None
    try:
        output = yield step
    except InterruptSuspended as suspended:
        # From a thread that did not know of the run, perhaps.
        run.suspend(str(suspended.interrupt_id))
    except Exception as raised:  # noqa: BLE001  the agent's; it is an outcome
        error = raised
    if run.bug is not None:
        # Whatever the agent made of it: nobody decided anything.
        raise run.bug
    if run.interrupt_id is not None:
        # Also if the agent took the suspension for an error and went on.
        return Execution(
            error=InterruptSuspended(run.interrupt_id), interrupt_id=run.interrupt_id
        )
    if run.broken is not None:
        return Execution(error=run.broken)
    if isinstance(output, Execution):
        return output
    return Execution(output=output, error=error)


def step_of(agent: Any, given: Any, options: Mapping[str, Any]) -> Step:
    """Return the step that runs an agent.

    Raises:
        TypeError: It is no agent.
    """
    if callable(agent):
        return Step(agent, (given,), dict(options))
    for name in ("execute", "run"):
        verb = getattr(agent, name, None)
        if callable(verb):
            native = getattr(agent, f"a{name}", None)
            return Step(verb, (given,), dict(options), native=native)
    raise TypeError(
        "An agent is a function of its input, or has `execute` or `run`; got a "
        f"{type(agent).__name__}."
    )

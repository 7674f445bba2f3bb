"""Breaks the product on purpose: a checker that finds none of these proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hitl_approvals.enums import StepStatus
from hitl_approvals.gate import perform
from hitl_approvals.services import effects, raising, turns
from tests.crash.cases import CALL, REMOTE, Case


def _unwritten() -> None:
    """The call is not on record before it begins."""

    def start(run_: Any, step: Any, **_options: Any) -> None:
        step.status, step.fence = StepStatus.STARTED, run_.fence

    effects.start = start


def _again_and_again() -> None:
    """A call that a predecessor began is simply begun again."""

    def found_started(run_: Any, call: Any, step: Any) -> Any:
        effects.adopt(run_, step)
        return perform._recorded(
            run_,
            call,
            step,
            StepStatus.SUCCEEDED,
            perform.OutcomeStatus.SUCCEEDED,
            perform.dumped_after(
                call.tool,
                perform._called(
                    call.tool, perform.approved_values(call, call.tool), step
                ),
            ),
        )

    perform._found_started = found_started


def _forgetful() -> None:
    """What a dead worker left is not owed to anybody."""
    claimable = turns._claimable

    def first_only(runnable: Any) -> Any:
        return claimable(runnable).filter(attempts=0)

    turns._claimable = first_only


def _tampering() -> None:
    """Something else runs than what was approved."""
    approved = perform.approved_values

    def more(call: Any, tool: Any) -> dict[str, Any]:
        values: dict[str, Any] = approved(call, tool)
        return {**values, "amount": values["amount"] + 1}

    perform.approved_values = more


def _unremembered() -> None:
    """What an agent elsewhere asked for is not known when it asks again."""
    raising._found = lambda row: None


FAULTS: dict[str, Callable[[], None]] = {
    "unwritten": _unwritten,
    "again and again": _again_and_again,
    "forgetful": _forgetful,
    "tampering": _tampering,
    "unremembered": _unremembered,
}


def commit(fault: str) -> None:
    """Break this process's copy of the product; the empty name breaks nothing."""
    if fault:
        FAULTS[fault]()


def planted() -> list[tuple[Case, str]]:
    """Return a case for every fault, and what has to be found in it."""
    at = {"phase": "resume", "point": CALL, "mode": "unsafe"}
    return [
        (Case(**at, fault="unwritten"), "doubled"),
        (Case(**at, fault="again and again"), "doubled"),
        (Case(**{**at, "mode": "idempotent"}, fault="forgetful"), "lost"),
        (Case(**{**at, "mode": "lookup"}, fault="tampering"), "wrong"),
        (
            Case(
                "remote",
                "raise.after_commit",
                REMOTE,
                answer="raise",
                fault="unremembered",
            ),
            "lost",
        ),
    ]

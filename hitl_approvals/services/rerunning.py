"""Deciding, and in the same transaction changing what the run that follows is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from hitl_approvals import canonical
from hitl_approvals.conf import hitl_settings
from hitl_approvals.decisions import Decision
from hitl_approvals.enums import TurnStatus
from hitl_approvals.exceptions import InterruptNotFound, TransitionNotAllowed
from hitl_approvals.services import control, rows
from hitl_approvals.services.decisions import decide
from hitl_approvals.services.transactions import run_atomic
from hitl_approvals.types import DecisionReceipt, Person


def decide_and_change(
    interrupt_id: UUID | str,
    decision: Decision | Mapping[str, Any],
    *,
    by: Person | None,
    via: str,
    input: Any = control.KEEP,  # noqa: A002
    execute_options: Any = control.KEEP,
    restart: bool = False,
) -> DecisionReceipt | None:
    """Decide an interrupt of a turn, and give the turn other input or options.

    All of it or nothing: no worker sees the decision without the change.

    Args:
        interrupt_id: The row to decide.
        decision: As for `decide`.
        by: Who decides; None is trusted code.
        via: The door, for the audit trail.
        input: What the turn is asked from now on.
        execute_options: What its agent is passed from now on.
        restart: Run the turn from its beginning. What was decided is withdrawn, this
            decision included: it was made for a call of the old input.

    Returns:
        The receipt, or None if there was nothing left to decide.

    Raises:
        TypeError: Other input needs a restart, or the interrupt belongs to no turn.
        ReviewerNotAllowed: A right is missing.
        TransitionNotAllowed: A call of the turn may be under way.
        PayloadRejected: Input or options are not JSON, too large or too deep.
    """
    changes = {
        name: _checked(value)
        for name, value in (("input", input), ("execute_options", execute_options))
        if value is not control.KEEP
    }

    def work() -> DecisionReceipt | None:
        try:
            receipt = decide(interrupt_id, decision, by=by, via=via)
        except (InterruptNotFound, TransitionNotAllowed):
            return None
        if receipt.turn_id is None:
            raise TypeError(
                "This interrupt belongs to no turn of ours; input=, execute_options= "
                "and restart= have nothing to change. Pass store= and agent=."
            )
        if restart:
            control.restart_open(receipt.turn_id, by=by, via=via, changes=changes)
        else:
            _change(receipt.turn_id, changes)
        return receipt

    return run_atomic(work)


def _change(turn_id: UUID, changes: Mapping[str, Any]) -> None:
    if "input" in changes and rows.steps().filter(turn=turn_id).exists():
        raise TypeError(
            "This turn has recorded steps, which came of its old input and would be "
            "replayed. Pass restart=True to run it from its beginning; its gated calls "
            "then ask again."
        )
    open_ = [TurnStatus.READY, TurnStatus.SUSPENDED]
    turn = rows.turns().filter(pk=turn_id, status__in=open_)
    if turn.update(**changes) != 1:
        status = rows.turns().values_list("status", flat=True).get(pk=turn_id)
        raise TransitionNotAllowed(
            f"This turn is {TurnStatus(status).label} now; its input stays as it is.",
            turn_id=str(turn_id),
            status=status,
        )


def _checked(value: Any) -> Any:
    canonical.dumps(
        value,
        max_bytes=hitl_settings.max_payload_bytes,
        max_depth=hitl_settings.max_depth,
    )
    return value

"""What may run for a call: exactly what was decided on, in the world it was meant for."""

from __future__ import annotations

from typing import Any

from hitl_approvals import canonical, results
from hitl_approvals.awaiting import awaited
from hitl_approvals.exceptions import PayloadRejected, RunDiverged
from hitl_approvals.gate.calls import Call, coerced
from hitl_approvals.gate.written import for_operator
from hitl_approvals.registry import Tool
from hitl_approvals.text import cleaned


class WorldChanged(Exception):
    """The approval was given for another state of things; the text says what changed."""


def may_run(call: Call) -> str:
    """Return the digest of the arguments that may run."""
    row = call.interrupt
    return canonical.digest(call.args_text) if row is None else row.decision_digest


def approved_values(call: Call, tool: Tool[Any, Any]) -> dict[str, Any]:
    """Return the values that may run: exactly the bytes that were decided on.

    Raises:
        RunDiverged: Bytes or schema are not the ones that the decision was about.
    """
    row = call.interrupt
    if row is None:
        return coerced(tool, call.args_text)
    text = row.args_text if row.decision_args_text is None else row.decision_args_text
    if text is None or canonical.digest(text) != row.decision_digest:
        raise RunDiverged(
            f"The arguments stored for `{tool.name}` are not the approved ones; nothing "
            "ran and the decision was kept."
        )
    if row.schema_digest != tool.signature.schema_digest:
        what = f"`{tool.name}` takes other arguments now than when this was approved."
        if call.problem:
            raise RunDiverged(f"{what} The call no longer fits: {call.problem}")
        raise WorldChanged(what)
    try:
        return coerced(tool, text)
    except PayloadRejected as error:
        raise RunDiverged(
            f"The approved arguments no longer fit `{tool.name}`: "
            f"{results.does_not_fit(error.detail, error.errors)}"
        ) from error


def require_precondition(tool: Tool[Any, Any], values: dict[str, Any]) -> None:
    """Let the tool look at the world once more before its call runs.

    Raises:
        WorldChanged: It said anything but True.
    """
    if tool.precondition is None:
        return
    try:
        said = awaited(tool.precondition, **values)
    except Exception as error:  # noqa: BLE001  refusal is the default
        said = f"its precondition raised {for_operator(error)}"
    if said is not True:
        why = said if isinstance(said, str) and said else "its precondition fails"
        raise WorldChanged(f"`{tool.name}`: {cleaned(why, 1000)}")

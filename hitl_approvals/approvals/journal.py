"""What a request keeps of the gated calls before it, so that a re-run repeats none.

An entry is plain JSON: the call's key, its decision, and what came of it.
"""

from __future__ import annotations

from typing import Any

from hitl_approvals.approvals.outcomes import (
    FAILED,
    SUCCEEDED,
    ToolResult,
    failed_result,
)
from hitl_approvals.approvals.runs import CallKey
from hitl_approvals.approvals.targets import Target
from hitl_approvals.canonical import printable
from hitl_approvals.decisions import Decision, Reject, decision_body
from hitl_approvals.exceptions import (
    ApprovalRejected,
    PayloadRejected,
    ToolFailed,
)

UNKNOWN = "unknown"
"""The call was begun, and nothing is known of its end."""


def begun(key: CallKey, interrupt_id: str, decision: Decision) -> dict[str, Any]:
    """Return the entry of a decided call whose end is not known yet."""
    return {
        "gate": key.gate,
        "tool": key.tool,
        "digest": key.digest,
        "occurrence": key.occurrence,
        "interrupt_id": interrupt_id,
        "decision": decision_body(decision),
        "status": UNKNOWN,
        "value": None,
        "kept": True,
        "error": "",
        "clean": False,
    }


def finish(
    entry: dict[str, Any], target: Target, result: ToolResult, *, ran: bool
) -> None:
    """Write into an entry what came of its call, and whether its body was entered."""
    if result.error is None:
        try:
            entry["value"] = target.result_as_json(result.value)
        except PayloadRejected as error:
            entry.update(kept=False, error=error.detail)
        entry["status"] = SUCCEEDED
        return
    text = printable(f"{type(result.error).__name__}: {result.error}", 2000)
    clean = not ran or isinstance(result.error, target.clean_errors)
    entry.update(status=FAILED, error=text, clean=clean)


def replay(entry: dict[str, Any], target: Target) -> ToolResult:
    """Return what came of a call in a run before this one; the tool is not touched."""
    interrupt_id: str = entry["interrupt_id"]
    decision = entry["decision"]
    if entry["status"] == UNKNOWN:
        return failed_result(
            ToolFailed(
                f"{entry['tool']} was begun in an earlier run, and it is not known "
                "whether it happened. It was not run again."
            ),
            interrupt_id,
        )
    if entry["status"] == FAILED:
        if decision["type"] == Reject.type:
            error: Exception = ApprovalRejected(entry["tool"], decision["reason"])
        else:
            error = ToolFailed(entry["error"])
        return failed_result(error, interrupt_id)
    if not entry["kept"]:
        return failed_result(
            ToolFailed(
                f"{entry['tool']} ran in an earlier run, and its result could not be "
                f"kept: {entry['error']} It was not run again."
            ),
            interrupt_id,
        )
    value = target.result_from_json(entry["value"])
    return ToolResult(SUCCEEDED, value=value, interrupt_id=interrupt_id)

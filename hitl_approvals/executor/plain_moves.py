"""The moves of the in-process loop as checkpoints, and what callers are told of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from hitl_approvals import canonical
from hitl_approvals.agents.recording import copied
from hitl_approvals.decisions import Approve, Edit, Reject, Respond
from hitl_approvals.exceptions import DecisionNotAllowed, PayloadRejected, ThreadBusy
from hitl_approvals.executor.outcome import ExecutionResult
from hitl_approvals.executor.plain_context import PlainContext
from hitl_approvals.graphs import Node
from hitl_approvals.schemas import validate_against
from hitl_approvals.stores.checkpoints import END, NODE, PAUSE, Checkpoint

logger = logging.getLogger("hitl_approvals")


def missing_value(thread_id: str) -> TypeError:
    """Return the error for a resume without an answer where one is needed."""
    return TypeError(
        f"Thread {thread_id!r} waits for an answer: resume(thread_id, value). Pass None "
        "if that is the answer."
    )


def busy(thread_id: str) -> ThreadBusy:
    return ThreadBusy(
        f"Thread {thread_id!r} has a run that is not over; nothing was started. Resume "
        "it, or take another thread.",
        thread_id=thread_id,
    )


def question(context: PlainContext) -> dict[str, Any]:
    assert context.asked is not None  # noqa: S101  it suspended
    return {
        "interrupt_payload": context.asked["payload"],
        "record": {**context.record, "asked": context.asked},
    }


def finished(last: Checkpoint, node: Node, output: Any) -> Checkpoint:
    try:
        return last.with_changes(
            kind=NODE,
            state={**last.state, node.name: output},
            history=[*last.history, {"node": node.name, "output": output}],
            pending_input=output,
            # What the node did stays with it: the next one begins with nothing.
            record={"nodes": last.record["nodes"]},
        )
    except PayloadRejected as error:
        raise PayloadRejected(
            f"Node `{node.name}` returned something that cannot be recorded: "
            f"{error.detail} Return JSON.",
            reason=error.reason,
        ) from error


def answer(asked: Any, value: Any) -> dict[str, Any]:
    if isinstance(value, (Approve, Edit)):
        raise DecisionNotAllowed(
            f"`{value.type}` is not offered here; use one of: respond, reject.",
            decision=value.type,
            allowed=["respond", "reject"],
        )
    if isinstance(value, Reject):
        return {"refused": value.reason}
    plain: Any = canonical.loads(
        canonical.dumps(value.value if isinstance(value, Respond) else value)
    )
    errors = [] if asked["schema"] is None else validate_against(asked["schema"], plain)
    if errors:
        raise PayloadRejected(
            "The answer does not fit; nothing was stored.", errors=errors
        )
    return {"value": plain}


def told(last: Checkpoint) -> ExecutionResult:
    if last.kind == PAUSE:
        return ExecutionResult(
            thread_id=last.thread_id,
            status="suspended",
            interrupted=True,
            interrupt_payload=copied(last.interrupt_payload),
            interrupt_id=last.id,
            waiting=1,
        )
    if last.kind == END:
        output = copied(last.pending_input)
        return ExecutionResult(last.thread_id, "completed", output=output)
    return ExecutionResult(
        last.thread_id,
        "ready",
        error=f"The thread stopped at node `{last.node}`; resume(thread_id) goes on.",
    )


def without_unknown(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a fork takes over: effects of unknown fate are left out, and shown."""
    effects = record.get("effects", {})
    left_out = [key for key, one in effects.items() if one["status"] == "begun"]
    if not left_out:
        return dict(record)
    logger.warning("A fork leaves out effects of unknown fate: %s.", left_out)
    known = {key: one for key, one in effects.items() if key not in left_out}
    return {**record, "effects": known, "left_out": left_out}

"""One round of a workflow: what people have to decide, and what came of it."""

from __future__ import annotations

from typing import Any

from hitl_approvals import canonical
from hitl_approvals.agents.framework import FrameworkTurn
from hitl_approvals.agents.links import Asking
from hitl_approvals.callshape import read_shape
from hitl_approvals.engines.rounds import ANSWER
from hitl_approvals.enums import DecisionType
from hitl_approvals.exceptions import ApprovalRejected
from hitl_approvals.gate.framework import Asked
from hitl_approvals.services import journal
from hitl_approvals.services.run import Run


def take_round(
    turn: FrameworkTurn, run: Run, asked: Asking
) -> dict[str, dict[str, Any]] | None:
    """Run the calls of a round, or note what people have to decide first.

    Returns:
        The results to deliver, all on record by now; None if somebody has to decide.

    Raises:
        InterruptSuspended: A call has to go to a person again. Let it pass.
        RunDeferred: A call could not be started; the run is to be repeated.
        RunDiverged: The round is not the one that was decided.
    """
    if "question" in asked.pending:
        results = _question(turn, asked)
    else:
        results = _calls(turn, asked)
    if results is not None and (run.buffer or run.resolutions):
        # On record before it is delivered: what a later run finds is what was said.
        journal.write(run)
    return results


def _calls(turn: FrameworkTurn, asked: Asking) -> dict[str, dict[str, Any]] | None:
    messages, reason = asked.pending.get("messages"), asked.pending.get("reason")
    calls = [_asked(one, asked.number) for one in asked.pending["calls"]]
    waits = [turn.offer(one, messages=messages, reason=reason) for one in calls]
    if any(waits):
        # Beside what waits only what nobody has to decide may run.
        free = [one for one in calls if _is_free(turn, one)]
        turn.perform(*free, messages=messages)
        return None
    told = turn.perform(*calls, messages=messages)
    return {
        one.id: _result(turn, one, message)
        for one, message in zip(calls, told, strict=True)
    }


def _asked(raw: Any, number: int) -> Asked:
    id_, name, args = read_shape(raw)
    return Asked(id=id_, name=name, args=args, origin=f"round-{number}")


def _is_free(turn: FrameworkTurn, call: Asked) -> bool:
    return turn.row_of(call) is None and call not in turn.waiting.values()


def _result(
    turn: FrameworkTurn, call: Asked, message: dict[str, Any]
) -> dict[str, Any]:
    row = turn.row_of(call)
    if row is None or row.decision is None:
        return {"decision": None, "args": call.args, "message": message}
    edited = row.decision == DecisionType.EDIT
    args = canonical.stored(row.decision_args_text) if edited else call.args
    return {"decision": str(row.decision), "args": args, "message": message}


def _question(turn: FrameworkTurn, asked: Asking) -> dict[str, dict[str, Any]] | None:
    payload = asked.pending["question"]
    # A workflow that was wound back may ask another question in the same place.
    key = f"round-{asked.number}-{canonical.key_digest(payload)}"
    if turn.offer_question(key, payload, asked.pending.get("response_schema")):
        return None
    try:
        value = turn.answer_to(key)
    except ApprovalRejected as refused:
        return {ANSWER: {"decision": "reject", "value": None, "reason": refused.reason}}
    return {ANSWER: {"decision": "respond", "value": value, "reason": ""}}

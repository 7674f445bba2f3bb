"""Questions to a person: found by key or by their order, answered once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hitl_approvals import canonical
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import (
    DecisionType,
    InterruptKind,
    InterruptStatus,
    OutcomeStatus,
)
from hitl_approvals.exceptions import ApprovalRejected, PayloadRejected, RunDiverged
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.schemas import check_schema
from hitl_approvals.services.requests import Request, dedupe_key
from hitl_approvals.services.run import Run
from hitl_approvals.services.suspension import suspend

if TYPE_CHECKING:
    from hitl_approvals.gate.batch import Gate


def ask(
    gate: Gate, payload: Any, schema: Mapping[str, Any] | None, key: str | None
) -> Any:
    """Return the answer to a question, suspending until there is one.

    Raises:
        InterruptSuspended, ApprovalRejected, RunDiverged, PayloadRejected
    """
    if key is None:
        label: list[Any] = ["ordinal", gate.ordinal("?")]
    else:
        label = ["key", key]
    own_key = gate.run.key(*label)
    found_by = _found_by(gate, own_key)
    asked = _bounded(payload)
    if schema is not None and (wrong := check_schema(schema)):
        raise PayloadRejected("response_schema is no JSON schema.", errors=wrong)
    row = gate.run.interrupts.get(found_by)
    if row is None:
        question = _question(own_key, payload, schema, gate.run)
        gate.stop(suspend(gate.run, requests=[question]))
    assert row is not None  # noqa: S101  a new question always waits
    if key is None and _bounded(row.payload) != asked:
        raise RunDiverged(
            f"Question {label[1]} of {_where(gate.run)} was {row.payload!r} and is "
            f"{payload!r} now. Pass key= to `interrupt` so that the answer finds its "
            "question."
        )
    return _answered(gate.run, row)


def offer(
    gate: Gate, payload: Any, schema: Mapping[str, Any] | None, key: str
) -> Request | None:
    """Return a question to be put to a person; None if it was asked before.

    Raises:
        PayloadRejected: The question or its schema is not JSON, too large or too deep.
    """
    own_key = gate.run.key("key", key)
    _bounded(payload)
    if schema is not None and (wrong := check_schema(schema)):
        raise PayloadRejected("response_schema is no JSON schema.", errors=wrong)
    if _found_by(gate, own_key) in gate.run.interrupts:
        return None
    return _question(own_key, payload, schema, gate.run)


def answer(gate: Gate, key: str) -> Any:
    """Return the answer to a question that was asked under a key.

    Raises:
        ApprovalRejected: A person refused to answer, or nobody did in time.
        RunDiverged: Nobody was asked.
    """
    row = gate.run.interrupts.get(_found_by(gate, gate.run.key("key", key)))
    if row is None:
        raise RunDiverged(f"Nobody was asked question {key!r} in this turn.")
    return _answered(gate.run, row)


def _found_by(gate: Gate, own_key: str) -> str:
    return dedupe_key(gate.run.turn.pk, InterruptKind.QUESTION, own_key)


def _where(run: Run) -> str:
    return "this turn" if run.node is None else f"node `{run.node}`"


def _asker(run: Run) -> str:
    return "the agent" if run.node is None else f"node `{run.node}` of the agent"


def _answered(run: Run, row: PendingInterrupt) -> Any:
    decided = row.status == InterruptStatus.DECIDED
    if row.decision == DecisionType.RESPOND:
        if decided:
            run.resolve_later(row, OutcomeStatus.ANSWERED)
        return row.decision_value
    if decided:
        expired = row.decision == DecisionType.EXPIRE
        run.resolve_later(
            row, OutcomeStatus.EXPIRED if expired else OutcomeStatus.REFUSED
        )
    raise ApprovalRejected("question", row.reason or "nobody answered in time")


def _bounded(payload: Any) -> str:
    return canonical.dumps(
        payload,
        max_bytes=hitl_settings.max_payload_bytes,
        max_depth=hitl_settings.max_depth,
    )


def _question(
    key: str, payload: Any, schema: Mapping[str, Any] | None, run: Run
) -> Request:
    return Request(
        key=key,
        kind=InterruptKind.QUESTION,
        fields={
            "payload": payload,
            "response_schema": None if schema is None else dict(schema),
            "context": {
                "asked": run.turn.input,
                "messages": [],
                "metadata": run.metadata(),
            },
            "allowed_decisions": [
                DecisionType.RESPOND.value,
                DecisionType.REJECT.value,
            ],
            "policy": {
                "gated": True,
                "why": f"{_asker(run)} asks a question",
                "tags": [],
            },
        },
    )

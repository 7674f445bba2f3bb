"""Checks a decision against its row, and says which columns it sets. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hitl_approvals import canonical, selectors
from hitl_approvals.conf import hitl_settings
from hitl_approvals.decisions import Decision, Edit, Reject, Respond
from hitl_approvals.enums import DecisionType, InterruptKind
from hitl_approvals.exceptions import (
    DecisionNotAllowed,
    PayloadRejected,
    SnapshotMismatch,
)
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.schemas import validate_against


@dataclass(slots=True)
class Verdict:
    """A decision translated into the columns that it sets."""

    type: DecisionType
    columns: dict[str, Any]
    may_run: str = ""
    """Digest of the arguments that may run now."""


def time_to_start(row: PendingInterrupt) -> timedelta | None:
    """Return how long an authorization of this call holds; None is without limit."""
    within = row.policy.get("execute_within")
    if within is None:
        return hitl_settings.execute_within
    return timedelta(seconds=within)


def translate(row: PendingInterrupt, decision: Decision) -> Verdict:
    """Check a decision against its row and return the columns that it sets."""
    kind = DecisionType(decision.type)
    if isinstance(decision, Edit):
        return _edit(row, decision)
    _require_offered(row, kind)
    if isinstance(decision, Reject):
        return Verdict(kind, {"reason": decision.reason})
    if isinstance(decision, Respond):
        return Verdict(kind, {"decision_value": _answer(row, decision.value)})
    return Verdict(kind, {}, may_run=frozen(row))


def _require_offered(row: PendingInterrupt, kind: DecisionType) -> None:
    if kind not in row.allowed_decisions:
        raise DecisionNotAllowed(
            f"`{kind}` is not offered here; "
            f"use one of: {', '.join(row.allowed_decisions)}.",
            decision=str(kind),
            allowed=list(row.allowed_decisions),
        )


def frozen(row: PendingInterrupt) -> str:
    """Return the digest of the arguments as shown, after comparing it with the text.

    Raises:
        SnapshotMismatch: The text is not the one that was digested.
    """
    text = row.args_text
    # Only ASCII is canonical, and only that can be digested.
    if text is None or not text.isascii() or canonical.digest(text) != row.args_digest:
        raise SnapshotMismatch(
            "The stored arguments were changed after the agent asked; nothing may run "
            "from them. Reject the call and look into how that happened."
        )
    return row.args_digest


def _edit(row: PendingInterrupt, decision: Edit) -> Verdict:
    if row.kind != InterruptKind.TOOL_CALL:
        _require_offered(row, DecisionType.EDIT)
        raise DecisionNotAllowed("A question has no arguments to edit.")
    proposed = frozen(row)
    text = _read_by_signature(row, decision.args)
    if canonical.digest(text) == proposed:
        # Nothing differs: what is recorded is what happened, an approval.
        _require_offered(row, DecisionType.APPROVE)
        return Verdict(
            DecisionType.APPROVE, {"reason": decision.reason or ""}, may_run=proposed
        )
    _require_offered(row, DecisionType.EDIT)
    return Verdict(
        DecisionType.EDIT,
        {"decision_args_text": text, "reason": decision.reason or ""},
        may_run=canonical.digest(text),
    )


def _read_by_signature(row: PendingInterrupt, edited: Mapping[str, Any]) -> str:
    """Return edited arguments as they would run, checked against schema and tool.

    Raises:
        PayloadRejected: With one entry a field.
    """
    limits = {
        "max_bytes": hitl_settings.max_payload_bytes,
        "max_depth": hitl_settings.max_depth,
    }
    text = canonical.dumps(edited, **limits)
    errors = validate_against(row.args_schema or {}, canonical.stored(text))
    tool = selectors.tool_of(row)
    same_tool = tool is not None and tool.signature.schema_digest == row.schema_digest
    if tool is not None and same_tool and not errors:
        # The tool's own validation knows more than a JSON schema can say, and its
        # reading is what will run.
        values = tool.signature.coerce(edited)
        text = canonical.dumps(tool.signature.dump_args(values), **limits)
    errors += _touched(row, canonical.stored(text))
    if errors:
        raise PayloadRejected(
            "The edited arguments do not fit; nothing was stored.", errors=errors
        )
    return text


def _touched(row: PendingInterrupt, edited: Any) -> list[dict[str, str]]:
    """Return an entry for each fixed argument that differs from the proposed one."""
    proposed: Any = canonical.stored(row.args_text)
    return [
        {"loc": name, "message": "This argument is fixed and cannot be edited."}
        for name in row.policy.get("fixed", ())
        if _text(edited, name) != _text(proposed, name)
    ]


def _text(args: dict[str, Any], name: str) -> str | None:
    """Return one argument as text: `1`, `1.0` and `true` are three values."""
    return canonical.dumps(args[name]) if name in args else None


def _answer(row: PendingInterrupt, value: Any) -> Any:
    canonical.dumps(
        value,
        max_bytes=hitl_settings.max_payload_bytes,
        max_depth=hitl_settings.max_depth,
    )
    if row.response_schema is not None:
        errors = validate_against(row.response_schema, value)
        if errors:
            raise PayloadRejected(
                "The answer does not fit; nothing was stored.", errors=errors
            )
    return value

"""Checks what a remote agent sent before it is frozen. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_approvals import canonical
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import DecisionType, InterruptKind
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.schemas import check_schema, validate_against
from hitl_approvals.text import storable

OFFERED: dict[str, tuple[str, ...]] = {
    InterruptKind.TOOL_CALL.value: (
        DecisionType.APPROVE.value,
        DecisionType.EDIT.value,
        DecisionType.REJECT.value,
    ),
    InterruptKind.QUESTION.value: (
        DecisionType.RESPOND.value,
        DecisionType.REJECT.value,
    ),
}
"""What may be decided of each kind, and is unless the request offers less."""
LENGTHS = {
    "ref": 500,
    "tool_name": 128,
    "tool_call_id": 255,
    "agent": 100,
    "thread_id": 255,
    "tool_description": None,
    "why": None,
    "check_hint": None,
}
"""The texts of a request, and how much of each its column holds."""
MOST = 32_767
"""What the column of priorities holds, on either side of 0."""
MOST_SECONDS = 316_224_000
"""Ten years: every database can add as much to its clock."""
_AROUND = 6
_OF_CALLS = ("tool_name", "args", "args_schema", "tool_call_id")
_OF_QUESTIONS = ("payload", "response_schema")


def require_fits(ref: str, sent: Mapping[str, Any]) -> None:
    """Refuse a request that cannot be frozen, shown or decided as it is.

    Args:
        ref: The client's name for the request.
        sent: The request, by the names of `raise_remote`; spans in seconds.

    Raises:
        PayloadRejected: Says which field, and why.
    """
    kind = sent["kind"]
    if kind not in OFFERED:
        raise _refused("kind", f"Use one of: {', '.join(OFFERED)}.")
    if not ref.strip():
        raise _refused("ref", "Give the request a name of your own.")
    for name, most in LENGTHS.items():
        _require_text(name, ref if name == "ref" else sent[name], most)
    _require_kind(kind, sent)
    for name in ("args", "args_schema", "payload", "response_schema", "context"):
        _require_json(name, sent[name])
    _require_schemas(sent)
    _require_names(sent)
    _require_offered(kind, sent["allowed_decisions"])
    _require_numbers(sent)


def _refused(loc: str, message: str) -> PayloadRejected:
    return PayloadRejected(
        f"The request does not fit, nothing was stored. {loc}: {message}",
        errors=[{"loc": loc, "message": message}],
    )


def _require_text(name: str, value: Any, most: int | None) -> None:
    if not isinstance(value, str) or not storable(value):
        raise _refused(name, "Must be text without NUL and unpaired surrogates.")
    if most is not None and len(value) > most:
        raise _refused(name, f"Has more than {most} characters.")
    if most is None:
        _require_json(name, value)


def _require_kind(kind: str, sent: Mapping[str, Any]) -> None:
    question = kind == InterruptKind.QUESTION
    for name in _OF_CALLS if question else _OF_QUESTIONS:
        if sent[name] not in (None, ""):
            raise _refused(name, f"A {kind.replace('_', ' ')} has none.")
    if question:
        return
    if not sent["tool_name"].strip():
        raise _refused("tool_name", "A tool call names its tool.")
    if sent["args"] is None:
        raise _refused("args", "A tool call has arguments, an empty object at least.")


def _require_json(name: str, value: Any) -> None:
    # Inside of a context stand values that may each be as deep as any other.
    around = _AROUND if name == "context" else 0
    try:
        canonical.dumps(
            value,
            max_bytes=hitl_settings.max_payload_bytes,
            max_depth=hitl_settings.max_depth + around,
        )
    except PayloadRejected as error:
        found = [{**one, "loc": _joined(name, one["loc"])} for one in error.errors]
        raise PayloadRejected(
            f"{name}: {error.detail}", reason=error.reason, errors=found
        ) from error


def _joined(name: str, loc: str) -> str:
    return f"{name}.{loc}" if loc else name


def _require_schemas(sent: Mapping[str, Any]) -> None:
    for name in ("args_schema", "response_schema"):
        if sent[name] is not None and (wrong := check_schema(sent[name], short=True)):
            raise _refused(name, wrong[0]["message"])
    if sent["args_schema"] is None:
        return
    wrong = validate_against(sent["args_schema"], sent["args"])
    if wrong:
        # Whoever approves them as they are would approve what the tool cannot take.
        raise PayloadRejected(
            "The arguments do not fit the schema that came with them; nothing was "
            "stored.",
            errors=[{**one, "loc": _joined("args", one["loc"])} for one in wrong],
        )


def _require_names(sent: Mapping[str, Any]) -> None:
    """Refuse names that name nothing: misspelt, they would hide and fix nothing."""
    properties = (sent["args_schema"] or {}).get("properties")
    known = {*(sent["args"] or {})}
    if isinstance(properties, Mapping):
        known |= {*properties}
    for name in ("fixed", "redact", "tags"):
        for one in sent[name]:
            if not isinstance(one, str):
                raise _refused(name, "Must be a list of texts.")
            if name != "tags" and one not in known:
                shown = canonical.printable(one, 80)
                raise _refused(name, f"There is no argument “{shown}”.")


def _require_offered(kind: str, allowed: list[Any]) -> None:
    known = OFFERED[kind]
    if not allowed or any(one not in known for one in allowed):
        raise _refused("allowed_decisions", f"Offer one or more of {', '.join(known)}.")


def _require_numbers(sent: Mapping[str, Any]) -> None:
    priority = sent["priority"]
    whole = isinstance(priority, int) and not isinstance(priority, bool)
    if not (whole and abs(priority) <= MOST):
        raise _refused("priority", f"Must be an integer from -{MOST} to {MOST}.")
    for name in ("expires_in", "execute_within", "outcome_within"):
        if sent[name] is not None and not 0 < sent[name] <= MOST_SECONDS:
            raise _refused(name, f"Must be above 0 and at most {MOST_SECONDS} seconds.")

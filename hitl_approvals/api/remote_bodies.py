"""What agent clients send: their requests and reports, as they were meant.

Calls no service, reads no row. What fits the row is checked by the services.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rest_framework.request import Request

from hitl_approvals.api.bodies import idempotency_key, refuse_unknown
from hitl_approvals.api.errors import BadRequest
from hitl_approvals.api.parsers import kind_of, read_object
from hitl_approvals.services.outcomes import OUTCOMES, Outcome
from hitl_approvals.services.remote_requests import MOST_SECONDS

if TYPE_CHECKING:
    from hitl_approvals.types import JSONValue

OUTCOME_FIELDS = ("status", "result", "error")


@dataclass(frozen=True, slots=True)
class RaiseRequest:
    """A request for a decision as it was sent."""

    key: str
    fields: dict[str, Any]
    """By the names of `raise_remote`."""
    text: str
    """The body to the letter."""


@dataclass(frozen=True, slots=True)
class OutcomeRequest:
    """What came of a call, as it was sent."""

    key: str
    status: Outcome
    result: Any
    error: str


def read_raise(request: Request) -> RaiseRequest:
    """Read the body and the headers of a request for a decision.

    Raises:
        BadRequest: A field is unknown or of the wrong type, or there is no key.
        PayloadRejected: The body is not JSON.
    """
    body = read_object(request)
    refuse_unknown(body, RAISE_FIELDS)
    fields = {
        name: RAISE_FIELDS[name](name, value)
        for name, value in body.items()
        if value is not None
    }
    return RaiseRequest(required_key(request), fields, body_text(request))


def read_outcome(request: Request) -> OutcomeRequest:
    """Read the body and the headers of a report.

    Raises:
        BadRequest: A field is unknown, missing or of the wrong type, or there is no key.
        PayloadRejected: The body is not JSON.
    """
    body = read_object(request)
    refuse_unknown(body, OUTCOME_FIELDS)
    status = body.get("status")
    for known in OUTCOMES:
        if status == known:
            break
    else:
        offered = ", ".join(f'"{one}"' for one in OUTCOMES)
        raise BadRequest(f'A report needs "status", one of {offered}.')
    error = body.get("error")
    return OutcomeRequest(
        key=required_key(request),
        status=known,
        result=body.get("result"),
        error="" if error is None else _text("error", error),
    )


def required_key(request: Request) -> str:
    """Return the `Idempotency-Key` header.

    Raises:
        BadRequest: It is missing, blank or too long.
    """
    key = idempotency_key(request)
    if key is None:
        raise BadRequest(
            "This needs an Idempotency-Key header, so that a repeat of it is known."
        )
    return key


def body_text(request: Request) -> str:
    """Return the body to the letter, once it was read as JSON and so is UTF-8."""
    raw: bytes = getattr(request, "raw_body", b"")
    return raw.decode("utf-8")


def _wrong(name: str, expected: str, value: JSONValue) -> BadRequest:
    message = f'The "{name}" must be {expected}; got {kind_of(value)}.'
    return BadRequest(message, errors=[{"loc": name, "message": message}])


def _text(name: str, value: JSONValue) -> str:
    if not isinstance(value, str):
        raise _wrong(name, "text", value)
    return value


def _object(name: str, value: JSONValue) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(name, "an object", value)
    return value


def _texts(name: str, value: JSONValue) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _wrong(name, "a list of texts", value)
    return value


def _number(name: str, value: JSONValue) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(name, "an integer", value)
    return value


def _span(name: str, value: JSONValue) -> timedelta:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _wrong(name, "a number of seconds", value)
    if not 0 < value <= MOST_SECONDS:
        # Before it is a span: that would not hold every number.
        message = f'The "{name}" must be above 0 and at most {MOST_SECONDS} seconds.'
        raise BadRequest(message, errors=[{"loc": name, "message": message}])
    return timedelta(seconds=value)


def _anything(name: str, value: JSONValue) -> Any:
    return value


RAISE_FIELDS: dict[str, Callable[[str, Any], Any]] = {
    "kind": _text,
    "tool_name": _text,
    "args": _object,
    "args_schema": _object,
    "payload": _anything,
    "response_schema": _object,
    "tool_call_id": _text,
    "tool_description": _text,
    "agent": _text,
    "thread_id": _text,
    "context": _object,
    "tags": _texts,
    "why": _text,
    "queue": _text,
    "priority": _number,
    "allowed_decisions": _texts,
    "fixed": _texts,
    "redact": _texts,
    "check_hint": _text,
    "expires_in": _span,
    "execute_within": _span,
    "outcome_within": _span,
}
"""What a request may hold, and how each is read; null is as if it were not there."""

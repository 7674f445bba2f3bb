"""Many decisions in one request: what was asked of each row, and what became of it.

Calls no service, reads no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rest_framework import status
from rest_framework.request import Request

from hitl_approvals.api.bodies import (
    MAX_KEY,
    DecisionRequest,
    idempotency_key,
    refuse_unknown,
)
from hitl_approvals.api.errors import BadRequest, refusal_body, status_of
from hitl_approvals.api.parsers import kind_of, read_object
from hitl_approvals.decisions import parse_decision
from hitl_approvals.exceptions import HitlApprovalsError, NotFound

if TYPE_CHECKING:
    from hitl_approvals.types import JSONValue

MOST = 100
"""Decisions of one request."""
FIELDS = ("id", "decision", "revision", "key")
"""What one entry of `decisions` may hold."""
RECORDED = "recorded"
REPLAYED = "replayed"


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision of many: readable, or the fault that is its outcome."""

    id: str
    asked: DecisionRequest | BadRequest


def read_many(request: Request) -> list[Entry]:
    """Read the body and the headers of many decisions.

    An entry that names its interrupt and is faulty otherwise is refused by itself.

    Raises:
        BadRequest: It cannot be told which interrupts are meant; none is decided.
        PayloadRejected: The body is not JSON.
    """
    body = read_object(request)
    refuse_unknown(body, ("decisions",))
    if "If-Match" in request.headers:
        raise BadRequest(
            'If-Match is about one interrupt; put a "revision" into each decision.'
        )
    shared = idempotency_key(request)
    given = body.get("decisions")
    if not isinstance(given, list) or not given:
        got = "an empty list" if given == [] else kind_of(given)
        raise BadRequest(f'The "decisions" must be a list of objects; got {got}.')
    if len(given) > MOST:
        raise BadRequest(
            f"At most {MOST} decisions fit into one request; got {len(given)}. "
            "None was recorded."
        )
    entries = [_entry(one, number, shared) for number, one in enumerate(given)]
    seen: set[str] = set()
    for number, one in enumerate(entries):
        if one.id.lower() in seen:
            raise _at(number, "id", "This interrupt is decided twice in one request.")
        seen.add(one.id.lower())
    return entries


def done(entry: Entry, shown: Any, *, replayed: bool) -> dict[str, Any]:
    """Return the outcome of a decision that stands."""
    return {
        "id": entry.id,
        "status": status.HTTP_200_OK,
        "code": REPLAYED if replayed else RECORDED,
        "detail": None,
        "interrupt": shown,
    }


def refused(
    entry: Entry, error: HitlApprovalsError | BadRequest, shown: Any
) -> dict[str, Any]:
    """Return the outcome of a decision that was not recorded, as its own door tells it.

    Raises:
        HitlApprovalsError: It is a fault of the server.
    """
    if isinstance(error, BadRequest):
        body: dict[str, Any] = {"code": error.default_code, "detail": str(error.detail)}
        if error.errors:
            body["errors"] = list(error.errors)
        return {
            "id": entry.id,
            "status": error.status_code,
            **body,
            "interrupt": shown,
        }
    code = status_of(error)
    if code is None:
        raise error
    body = {**refusal_body(error), "interrupt": shown}
    if isinstance(error, NotFound):
        body["interrupt"] = None
    return {"id": entry.id, "status": code, **body}


def _entry(given: JSONValue, number: int, shared: str | None) -> Entry:
    if not isinstance(given, dict):
        raise _at(number, "", f"A decision must be an object; got {kind_of(given)}.")
    pk = given.get("id")
    if not isinstance(pk, str) or not 0 < len(pk) <= MAX_KEY:
        raise _at(number, "id", "A decision must name its interrupt with a text.")
    try:
        return Entry(pk, _asked(given, shared))
    except BadRequest as error:
        return Entry(pk, error)


def _asked(given: Mapping[str, JSONValue], shared: str | None) -> DecisionRequest:
    refuse_unknown(given, FIELDS)
    revision = given.get("revision")
    if revision is not None and (
        not isinstance(revision, int) or isinstance(revision, bool)
    ):
        raise BadRequest(f'The "revision" must be an integer; got {kind_of(revision)}.')
    key = given.get("key")
    if key is not None and (
        not isinstance(key, str) or not key.strip() or len(key) > MAX_KEY
    ):
        raise BadRequest(f'A "key" must be a text of 1 to {MAX_KEY} characters.')
    try:
        # Here, so that a TypeError further in is a fault and not the client's.
        decision = parse_decision(given.get("decision"))
    except TypeError as error:
        raise BadRequest(str(error)) from error
    return DecisionRequest(decision, revision, shared if key is None else key)


def _at(number: int, name: str, message: str) -> BadRequest:
    loc = f"decisions.{number}.{name}" if name else f"decisions.{number}"
    return BadRequest(f"{loc}: {message}", errors=[{"loc": loc, "message": message}])

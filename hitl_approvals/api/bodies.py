"""What the bodies and headers of our requests mean. Calls no service, reads no row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rest_framework.request import Request

from hitl_approvals.api.errors import BadRequest
from hitl_approvals.api.parsers import kind_of, read_object
from hitl_approvals.canonical import printable
from hitl_approvals.decisions import Decision, parse_decision
from hitl_approvals.enums import DecisionType
from hitl_approvals.services.settlements import ANSWERS, Answer

if TYPE_CHECKING:
    from hitl_approvals.types import JSONValue

FIELDS: dict[DecisionType, tuple[str, ...]] = {
    DecisionType.APPROVE: (),
    DecisionType.REJECT: ("reason",),
    DecisionType.EDIT: ("args", "reason"),
    DecisionType.RESPOND: ("value",),
}
"""What the body of each decision may hold beside `revision`."""

START_FIELDS = ("agent", "input", "thread_id", "execute_options")
MAX_KEY = 255
MAX_THREAD = 255
"""What the column holds."""

_REVISION = re.compile(r'(?:W/)?"(\d{1,9})"|(\d{1,9})', re.ASCII)
_NOT_FOR_COLUMNS = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A decision as it was sent."""

    decision: Decision
    revision: int | None
    key: str | None


@dataclass(frozen=True, slots=True)
class StartRequest:
    """The start of a turn as it was sent."""

    agent: str
    input: Any
    thread_id: str | None
    execute_options: Any
    key: str | None


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """Where and into which thread a turn is to be forked, as it was sent."""

    at: str | None
    thread_id: str | None
    key: str | None


@dataclass(frozen=True, slots=True)
class SettlementRequest:
    """What a person found out, as it was sent."""

    answer: Answer
    result: Any
    note: str
    revision: int | None
    key: str | None


def read_decision(request: Request, kind: DecisionType) -> DecisionRequest:
    """Read the body and the headers of one decision.

    Raises:
        BadRequest: A field is unknown, missing or of the wrong type.
        PayloadRejected: The body is not JSON.
    """
    body = read_object(request)
    refuse_unknown(body, (*FIELDS[kind], "revision"))
    revision = _revision(request, body)
    fields = {name: body[name] for name in FIELDS[kind] if name in body}
    try:
        # Here, so that a TypeError further in is a fault and not the client's.
        decision = parse_decision({"type": kind.value, **fields})
    except TypeError as error:
        raise BadRequest(str(error)) from error
    return DecisionRequest(decision, revision, idempotency_key(request))


def read_start(request: Request) -> StartRequest:
    """Read the body and the headers of the start of a turn.

    Raises:
        BadRequest: A field is unknown, missing or of the wrong type.
        PayloadRejected: The body is not JSON.
    """
    body = read_object(request)
    refuse_unknown(body, START_FIELDS)
    for name in ("agent", "input"):
        if name not in body:
            raise BadRequest(f'The start of a turn needs "{name}"; got none.')
    agent = body["agent"]
    if not isinstance(agent, str):
        raise BadRequest(f'The "agent" must be a string; got {kind_of(agent)}.')
    options = body.get("execute_options")
    if options is not None and not isinstance(options, dict):
        raise BadRequest(
            f'The "execute_options" must be an object or null; got {kind_of(options)}.'
        )
    return StartRequest(
        agent=agent,
        input=body["input"],
        thread_id=_thread(body.get("thread_id")),
        execute_options=options,
        key=idempotency_key(request),
    )


def read_settlement(request: Request) -> SettlementRequest:
    """Read what a person found out about a call in doubt.

    Raises:
        BadRequest: A field is unknown, missing or of the wrong type.
        PayloadRejected: The body is not JSON.
    """
    body = read_object(request)
    refuse_unknown(body, ("answer", "result", "note", "revision"))
    answer = body.get("answer")
    if answer not in ANSWERS:
        offered = ", ".join(f'"{one}"' for one in ANSWERS)
        raise BadRequest(f'A settlement needs "answer", one of {offered}.')
    if "result" in body and answer != "happened":
        raise BadRequest('Only a call that "happened" has a "result".')
    return SettlementRequest(
        answer=answer,
        result=body.get("result"),
        note=_text(body, "note"),
        revision=_revision(request, body),
        key=idempotency_key(request),
    )


def read_reason(request: Request) -> str:
    """Read the body of a command that takes a reason and nothing else.

    Raises:
        BadRequest: A field is unknown or of the wrong type.
        PayloadRejected: The body is not JSON.
    """
    body = read_object(request)
    refuse_unknown(body, ("reason",))
    return _text(body, "reason")


def read_claim(request: Request) -> float | None:
    """Read for how many minutes somebody takes a row in hand, if it says so.

    Raises:
        BadRequest: A field is unknown or of the wrong type.
        PayloadRejected: The body is not JSON.
    """
    body = read_object(request)
    refuse_unknown(body, ("minutes",))
    minutes = body.get("minutes")
    if minutes is None:
        return None
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)):
        raise BadRequest(f'The "minutes" must be a number; got {kind_of(minutes)}.')
    return minutes


def read_release(request: Request) -> str:
    """Read why somebody lets a row go, if it says so.

    Raises:
        BadRequest: A field is unknown or of the wrong type.
        PayloadRejected: The body is not JSON.
    """
    body = read_object(request)
    refuse_unknown(body, ("note",))
    return _text(body, "note")


def read_assign(request: Request) -> str:
    """Read the name of whoever a row is given to.

    Raises:
        BadRequest: It is missing or no text, or a field is unknown.
        PayloadRejected: The body is not JSON.
    """
    body = read_object(request)
    refuse_unknown(body, ("to",))
    name = _text(body, "to")
    if not name or _NOT_FOR_COLUMNS.search(name):
        raise BadRequest('To assign needs "to", the name that a person logs in by.')
    return name


def read_restart(request: Request) -> dict[str, Any]:
    """Read what a restart changes: the input, if it is there.

    Raises:
        BadRequest: A field is unknown.
        PayloadRejected: The body is not JSON.
    """
    body = read_object(request)
    refuse_unknown(body, ("input",))
    return {"input": body["input"]} if "input" in body else {}


def read_fork(request: Request) -> ForkRequest:
    """Read the body and the headers of a fork.

    Raises:
        BadRequest: A field is unknown or of the wrong type.
        PayloadRejected: The body is not JSON.
    """
    body = read_object(request)
    refuse_unknown(body, ("at", "thread_id"))
    return ForkRequest(
        at=_text(body, "at") or None,
        thread_id=_thread(body.get("thread_id")),
        key=idempotency_key(request),
    )


def read_nothing(request: Request) -> None:
    """Refuse a body that says something: it would not be heard.

    Raises:
        BadRequest: There is a field.
        PayloadRejected: The body is not JSON.
    """
    refuse_unknown(read_object(request), ())


def read_seen(request: Request) -> int | None:
    """Read the revision that a person saw, where nothing else is to be said.

    Raises:
        BadRequest: A field is unknown or of the wrong type.
        PayloadRejected: The body is not JSON.
    """
    body = read_object(request)
    refuse_unknown(body, ("revision",))
    return _revision(request, body)


def idempotency_key(request: Request) -> str | None:
    """Return the `Idempotency-Key` header as it stands.

    Raises:
        BadRequest: It is blank or too long.
    """
    key: str | None = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not key.strip() or len(key) > MAX_KEY:
        raise BadRequest(f"The Idempotency-Key must have 1 to {MAX_KEY} characters.")
    return key


def refuse_unknown(body: Mapping[str, object], known: Iterable[str]) -> None:
    """Refuse fields that mean nothing here: a misspelt one must not be lost.

    Raises:
        BadRequest: Names them.
    """
    unknown = [name for name in body if name not in known]
    if not unknown:
        return
    offered = ", ".join(f'"{name}"' for name in known)
    message = f"There is no such field here; known are {offered}."
    shown = [printable(name, 80) for name in unknown[:20]]
    raise BadRequest(
        f"Unknown: {', '.join(shown)}. Known are {offered}.",
        errors=[{"loc": name, "message": message} for name in shown],
    )


def _revision(request: Request, body: Mapping[str, JSONValue]) -> int | None:
    """Return the revision that the person saw, from the body or from `If-Match`."""
    given = body.get("revision")
    if given is not None and (not isinstance(given, int) or isinstance(given, bool)):
        raise BadRequest(f'The "revision" must be an integer; got {kind_of(given)}.')
    header = request.headers.get("If-Match")
    if header is None or header.strip() == "*":
        return given
    match = _REVISION.fullmatch(header.strip())
    if match is None:
        raise BadRequest('If-Match must hold one revision, as in "3".')
    matched = int(match[1] or match[2])
    if given not in (None, matched):
        raise BadRequest('If-Match and "revision" name two different revisions.')
    return matched


def _text(body: Mapping[str, JSONValue], name: str) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRequest(f'The "{name}" must be text; got {kind_of(value)}.')
    return value


def _thread(value: JSONValue) -> str | None:
    if value is None:
        return None
    expected = f'The "thread_id" must be a text of 1 to {MAX_THREAD} characters'
    if not isinstance(value, str):
        raise BadRequest(f"{expected}; got {kind_of(value)}.")
    if not value.strip() or len(value) > MAX_THREAD or _NOT_FOR_COLUMNS.search(value):
        raise BadRequest(f"{expected}, without NUL and unpaired surrogates.")
    return value

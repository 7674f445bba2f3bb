"""Loaded by schemathesis: who makes each request, and about which rows.

`HITL_SCHEMA_ACTOR` names one of the tokens, or `each`: whoever may do it.
"""

from __future__ import annotations

import json
import os
import random
from typing import Any
from urllib.request import Request, urlopen
from uuid import UUID

import schemathesis

from tests.schema.people import KEY

FETCHING = ("interrupts_consume", "interrupts_outcome", "interrupts_give_back")
"""What one process of an agent does under one key."""
ACTOR = os.environ["HITL_SCHEMA_ACTOR"]
BASE = os.environ["HITL_SCHEMA_URL"]
TOKENS: dict[str, str] = json.loads(os.environ["HITL_SCHEMA_TOKENS"])
LONGEST_WAIT = 0.05
"""Seconds; a request that may wait for half a minute would take that long here."""
MOST = 30
UNFIT = (
    "payload",
    "response_schema",
    "args_schema",
    "fixed",
    "redact",
    "queue",
    "allowed_decisions",
)
RENEWED_EVERY = 40

_random = random.Random(7)
_known: dict[str, list[str]] = {}
_calls = 0


@schemathesis.auth(refresh_interval=None)
class TokenOfTheActor:
    def get(self, case: Any, context: Any) -> str:
        return TOKENS[actor_of(context.operation)]

    def set(self, case: Any, data: str, context: Any) -> None:
        case.headers = {**(case.headers or {}), "Authorization": data}


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Wait for a moment only, and let half of all requests be about what is there."""
    _shorten(case)
    if case.meta is None or _random.random() < 0.5:
        return
    name = case.operation.definition.raw["operationId"]
    if case.meta.generation.mode.is_positive and isinstance(case.body, dict):
        if name == "turns_start":
            case.body["agent"] = "support"
        if name == "interrupts_raise":
            _make_it_a_call(case.body)
    if name in FETCHING and "Idempotency-Key" in (case.headers or {}):
        case.headers["Idempotency-Key"] = KEY
    given = (case.path_parameters or {}).get("id")
    if case.meta.phase.name.value == "stateful" or not _is_uuid(given):
        return
    if known := rows_of(case.operation):
        case.path_parameters["id"] = _random.choice(known)


def _shorten(case: Any) -> None:
    try:
        wait = float((case.query or {}).get("wait", 0))
    except (TypeError, ValueError):
        return
    if 0 < wait <= MOST:
        case.query["wait"] = LONGEST_WAIT


def _make_it_a_call(body: dict[str, Any]) -> None:
    """What the fields of a request have to do with each other, the document cannot say."""
    for name in UNFIT:
        body.pop(name, None)
    body["kind"] = "tool_call"
    body["tool_name"] = (body.get("tool_name") or "").strip() or "refund"
    body["args"] = body.get("args") or {}


def actor_of(operation: Any) -> str:
    """Return whoever may do it, so that requests come far and chains go on."""
    if ACTOR != "each":
        return ACTOR
    security = operation.definition.raw.get("security", [])
    if all("clientToken" in one for one in security):
        return "client"
    name = operation.definition.raw["operationId"]
    return "backend" if name == "turns_start" else "reviewer"


def rows_of(operation: Any) -> list[str]:
    """Return ids of rows that whoever asks can see, as they were a moment ago."""
    global _calls
    if _calls % RENEWED_EVERY == 0:
        for actor in ("client", "reviewer"):
            _known[f"{actor} interrupts"] = _ids("interrupts", actor)
        _known["reviewer turns"] = _ids("turns", "reviewer")
    _calls += 1
    kind = operation.path.split("/")[1]
    actor = "client" if actor_of(operation) == "client" else "reviewer"
    return _known.get(f"{actor} {kind}", [])


def _ids(kind: str, actor: str) -> list[str]:
    headers = {"Authorization": TOKENS[actor]}
    request = Request(f"{BASE}/{kind}/?page_size=100", headers=headers)
    with urlopen(request, timeout=30) as answer:
        return [one["id"] for one in json.load(answer)["results"]]


def _is_uuid(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(UUID(text))
    except ValueError:
        return False

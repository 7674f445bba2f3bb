"""Every endpoint that writes meets every body that no friendly client sends."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rest_framework.test import APIClient

from hitl_approvals.api.schema.operations import OPERATIONS
from tests.api import matrix, scenes
from tests.api.test_hostile_json import REFUSED
from tests.support.undoing import undone

HEADERS = {"Idempotency-Key": "k-9"}
BAD: dict[str, tuple[bytes, str, int]] = {
    name: (body, reason, 400)
    for name, body, reason in REFUSED
    if name != "deeper than the gate"
} | {
    "a list": (b"[]", "", 400),
    "a text": (b'"approve"', "", 400),
    "null": (b"null", "", 400),
    "an unknown field": (b'{"revsion": 3}', "", 400),
    "a field called NUL": (b'{"\\u0000": 1}', "", 400),
}
CLIENTS_ALONE = {"create", "consume", "outcome", "give_back"}
TEXTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("interrupt", "reject"): ("reason",),
    ("interrupt", "edit"): ("reason",),
    ("interrupt", "settle"): ("note", "answer"),
    ("interrupt", "release"): ("note",),
    ("interrupt", "assign"): ("to",),
    ("interrupt", "cancel"): ("reason",),
    ("interrupt", "outcome"): ("error", "status"),
    ("interrupt", "give_back"): ("reason",),
    ("interrupt", "create"): ("tool_name", "agent", "thread_id", "why", "queue"),
    ("turn", "create"): ("agent", "thread_id"),
    ("turn", "cancel"): ("reason",),
    ("turn", "fork"): ("at", "thread_id"),
}
"""Fields whose text ends in a column or is compared with one."""

Post = Callable[..., Any]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("django.request"), "disabled", True)


@pytest.fixture
def cast(db: None) -> matrix.Cast:
    return matrix.Cast()


def written() -> list[tuple[str, str]]:
    """Return every operation that takes a body."""
    return [each for each, known in OPERATIONS.items() if known.body is not None]


def doors(cast: matrix.Cast) -> Iterator[tuple[tuple[str, str], APIClient, str]]:
    """Yield every operation that writes, who may call it, and an address of it."""
    own, remote = cast.in_doubt(), cast.remote_consumed()
    for base, action in written():
        agent = base == "interrupt" and action in CLIENTS_ALONE
        caller = cast.callers["owner" if agent or action == "cancel" else "superuser"]
        row = remote if agent or (base, action) == ("interrupt", "cancel") else own
        if base == "turn":
            caller = cast.callers["superuser"]
        start = scenes.LIST if base == "interrupt" else scenes.TURNS
        pk = row.pk if base == "interrupt" else own.turn_id
        if action == "create":
            address = start
        elif action == "decide_many":
            address = f"{start}decide/"
        else:
            address = f"{start}{pk}/{action.replace('_', '-')}/"
        yield (base, action), caller, address


def send(caller: APIClient, address: str, body: bytes, **headers: str) -> Any:
    return caller.generic(
        "POST",
        address,
        body,
        content_type=headers.pop("media_type", "application/json"),
        headers={**HEADERS, **headers},
    )


def test_every_endpoint_that_writes_refuses_every_bad_body(cast: matrix.Cast) -> None:
    every = list(doors(cast))
    assert len(every) == len(written()) >= 20
    before = matrix.state()

    for door, caller, address in every:
        for name, (body, reason, status) in BAD.items():
            answer = send(caller, address, body)
            shown = answer.json()
            code = "payload_rejected" if reason else "malformed"
            assert (answer.status_code, shown["code"]) == (status, code), (door, name)
            assert shown.get("reason", "") == reason, (door, name)
            assert len(answer.content) < 20_000
        packed = send(
            caller, address, gzip.compress(b"{}"), **{"Content-Encoding": "gzip"}
        )
        assert packed.status_code == 415, door
        latin = send(
            caller, address, b"{}", media_type="application/json; charset=latin-1"
        )
        assert latin.status_code == 415, door
        form = send(
            caller, address, b"a=1", media_type="application/x-www-form-urlencoded"
        )
        assert form.status_code == 415, door
        assert matrix.state() == before, door


NEEDED: dict[tuple[str, str], dict[str, Any]] = {
    ("interrupt", "reject"): {"reason": "no"},
    ("interrupt", "edit"): {"args": {"order": "A"}},
    ("interrupt", "settle"): {"answer": "give_up"},
    ("interrupt", "outcome"): {"status": "failed", "error": "x"},
    ("interrupt", "create"): {"tool_name": "t", "args": {}},
    ("turn", "create"): {"agent": "api_agent", "input": {}},
}


def test_no_text_is_a_fault_of_the_server(cast: matrix.Cast) -> None:
    for door, caller, address in doors(cast):
        for field in TEXTS.get(door, ()):
            for text in ("a\x00b", "\ud800", "\udfff\ud800", "\U0001f600" * 9):
                body = {**NEEDED.get(door, {}), field: text}
                with undone():
                    answer = send(caller, address, json.dumps(body).encode())
                told = (door, field, answer.status_code)
                assert answer.status_code in (200, 201, 202, 400, 403, 409), told
                assert answer.content.isascii()

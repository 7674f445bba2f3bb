"""Bodies that a friendly client never sends, and values that a careless one loses."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIRequest
from rest_framework.test import force_authenticate

from hitl_approvals import run_turn
from hitl_approvals.api.interrupts import InterruptViewSet
from hitl_approvals.api.parsers import SLACK_BYTES
from tests.api import agents_for_api, scenes

DEEP = b'{"args":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
REFUSED: list[tuple[str, bytes, str]] = [
    ("not json", b"{", "not_json"),
    ("two values", b"{} {}", "not_json"),
    ("a trailing comma", b'{"args":{},}', "not_json"),
    ("a comment", b"{} // yes", "not_json"),
    ("single quotes", b"{'args': {}}", "not_json"),
    ("a control character", b'{"args":{"order":"\x01"}}', "not_json"),
    ("only blanks", b"   ", "not_json"),
    ("a byte order mark", b'\xef\xbb\xbf{"args":{}}', "not_json"),
    ("a key twice", b'{"args":{"amount":1,"amount":1000}}', "duplicate_key"),
    ("a key twice outside", b'{"args":{},"args":{}}', "duplicate_key"),
    ("an escaped key twice", b'{"args":{"a":1,"\\u0061":2}}', "duplicate_key"),
    ("not a number", b'{"args":{"amount":NaN}}', "not_finite"),
    ("infinity", b'{"args":{"amount":-Infinity}}', "not_finite"),
    ("a float that overflows", b'{"args":{"amount":1e999}}', "not_finite"),
    ("not UTF-8", b'{"args":{"order":"\xff"}}', "not_utf8"),
    ("a surrogate in UTF-8", b'{"args":{"order":"\xed\xa0\x80"}}', "not_utf8"),
    ("UTF-16", '{"args":{}}'.encode("utf-16"), "not_utf8"),
    ("too deep", DEEP, "too_deep"),
    ("deeper than the gate", b'{"args":{"a":' + b"[" * 32 + b"]" * 32 + b"}}", ""),
    ("a huge integer", b'{"args":{"amount":' + b"9" * 5000 + b"}}", "too_large"),
    ("a long text", b'{"args":{"order":"' + b"x" * 400_000 + b'"}}', "too_large"),
    ("many blanks", b'{"args":{}' + b" " * 400_000 + b"}", "too_large"),
]


@pytest.mark.parametrize(
    ("body", "reason"),
    [case[1:] for case in REFUSED],
    ids=[case[0] for case in REFUSED],
)
def test_hostile_json_is_refused_and_nothing_is_stored(reviewer, body, reason):
    row = scenes.pending()

    response = reviewer.generic(
        "POST", scenes.url(row, "edit"), body, content_type="application/json"
    )

    shown = response.json()
    assert (response.status_code, shown["code"]) == (400, "payload_rejected")
    assert shown["reason"] == (reason or "too_deep")
    assert shown["detail"].endswith(".")
    assert len(response.content) < 10_000
    assert shown["interrupt"]["status"] == "pending"
    assert scenes.events(row) == ["raised"]


def test_a_payload_over_the_limit_within_the_slack_is_refused_too(reviewer, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_PAYLOAD_BYTES": 500}
    row = scenes.pending()

    response = reviewer.post(
        scenes.url(row, "edit"),
        {"args": {"order": "x" * 600, "amount": 1}},
        format="json",
    )

    assert (response.status_code, response.json()["reason"]) == (400, "too_large")


def test_no_more_is_read_than_the_limit(reviewer, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_PAYLOAD_BYTES": 1000}
    asked: list[int] = []

    class Stream(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            assert size is not None
            asked.append(size)
            return b"x" * size

    row = scenes.pending()
    response = reviewer.generic(
        "POST",
        scenes.url(row, "approve"),
        b"",
        content_type="application/json",
        **{"wsgi.input": Stream(), "CONTENT_LENGTH": str(10**9)},
    )

    assert response.json()["reason"] == "too_large"
    assert asked == [1000 + SLACK_BYTES + 1]


KEPT: list[Any] = [
    2512292042121000001,
    2**63,
    -(10**300),
    10**4000,
    0.1,
    1e300,
    "a\x00b",
    "\ud800",
    "\udfff\ud800",
    "ä\u2028\u202e\U0001f600",
    "</script>",
    {"": None, "a.b": [[], {}], "__proto__": True},
    [None, False, 0, ""],
]


@pytest.mark.parametrize("value", KEPT, ids=lambda value: ascii(value)[:20])
def test_values_go_in_and_out_without_loss(reviewer, value):
    row = scenes.pending("api_store", {"value": 0})

    response = reviewer.generic(
        "POST",
        scenes.url(row, "edit"),
        json.dumps({"args": {"value": value}}),
        content_type="application/json",
    )

    assert response.status_code == 200, response.content
    assert response.content.isascii()
    assert response["Content-Type"] == "application/json"
    assert json.loads(response.content)["decision_args"] == {"value": value}
    run_turn(row.turn_id)
    (ran,) = agents_for_api.RAN
    assert ran == ("api_store", value)


@pytest.mark.parametrize("value", KEPT, ids=lambda value: ascii(value)[:20])
def test_what_the_agent_asked_for_is_shown_exactly(reviewer, value):
    row = scenes.pending("api_store", {"value": value})

    one = json.loads(reviewer.get(scenes.url(row)).content)
    many = json.loads(reviewer.get(scenes.LIST).content)

    assert one["args"] == many["results"][0]["args"] == {"value": value}


MEDIA_TYPES: list[tuple[str, bytes, int]] = [
    ("application/json", b"{}", 200),
    ("application/json; charset=utf-8", b"{}", 200),
    ('application/JSON; charset="UTF-8"', b"{}", 200),
    ("application/json; charset=latin-1", b"{}", 415),
    ("text/plain", b"{}", 415),
    ("application/x-www-form-urlencoded", b"revision=1", 415),
    ("multipart/form-data; boundary=x", b"--x--\r\n", 415),
    ("application/jsonp", b"{}", 415),
    ("", b"{}", 415),
    ("x" * 10_000, b"{}", 415),
    # What simple servers and clients say of a request without a body.
    ("text/plain", b"", 200),
    ("application/x-www-form-urlencoded", b"", 200),
    ("", b"", 200),
]


@pytest.mark.parametrize(("media_type", "body", "status"), MEDIA_TYPES)
def test_a_body_is_json_or_refused(reviewer, media_type, body, status):
    row = scenes.pending()

    response = reviewer.generic(
        "POST", scenes.url(row, "approve"), body, content_type=media_type
    )

    assert response.status_code == status
    if status == 415:
        assert response.json()["code"] == "unsupported_media_type"
        assert scenes.events(row) == ["raised"]


def test_a_body_without_a_length_is_not_taken_for_none(reviewer):
    row = scenes.pending()

    response = reviewer.generic(
        "POST",
        scenes.url(row, "approve"),
        b"",
        content_type="application/json",
        HTTP_TRANSFER_ENCODING="chunked",
    )

    assert (response.status_code, response.json()["code"]) == (411, "length_required")
    assert scenes.events(row) == ["raised"]


def test_a_body_that_ends_early_is_not_taken_for_none(reviewer):
    row = scenes.pending()

    response = reviewer.generic(
        "POST",
        scenes.url(row, "approve"),
        b"",
        content_type="application/json",
        **{"wsgi.input": io.BytesIO(b""), "CONTENT_LENGTH": "14"},
    )

    assert (response.status_code, response.json()["code"]) == (400, "malformed")
    assert scenes.events(row) == ["raised"]


def test_a_connection_that_breaks_decides_nothing(reviewer):
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError("reset by peer")

    row = scenes.pending()

    response = reviewer.generic(
        "POST",
        scenes.url(row, "approve"),
        b"",
        content_type="application/json",
        **{"wsgi.input": Broken(), "CONTENT_LENGTH": "14"},
    )

    assert (response.status_code, response.json()["code"]) == (400, "malformed")
    assert scenes.events(row) == ["raised"]


def test_a_body_without_a_length_is_read_where_the_server_can(people):
    # As HTTP/2 may send it to an ASGI server.
    row = scenes.pending()
    scope = {
        "type": "http",
        "method": "POST",
        "path": scenes.url(row, "approve"),
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"host", b"testserver")],
    }
    request = ASGIRequest(scope, io.BytesIO(b'{"revision": 7}'))
    force_authenticate(request, people["reviewer"])

    view = InterruptViewSet.as_view({"post": "approve"})
    response = view(request, pk=str(row.pk)).render()

    assert (response.status_code, response.data["code"]) == (409, "stale_review")
    assert response.data["interrupt"]["url"] == scenes.url(row)

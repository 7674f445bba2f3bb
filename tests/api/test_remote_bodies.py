"""What an agent sends that cannot be read or does not fit: refused, and nothing stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hitl_approvals import services
from hitl_approvals.api import remote_bodies
from hitl_approvals.models import InterruptEvent, PendingInterrupt, ReviewQueue
from hitl_approvals.services.remote_requests import MOST_SECONDS
from tests.api import scenes
from tests.api.remote_scenes import CALL, Agent
from tests.support.remote import fetched, fresh, kinds

pytestmark = pytest.mark.django_db
SPANS = ("expires_in", "execute_within", "outcome_within")


def send(agent: Agent, url: str, text: str | bytes, **headers: str) -> Any:
    raw = text.encode() if isinstance(text, str) else text
    sent = {"Idempotency-Key": "k", **headers}
    return agent.http.generic(
        "POST", url, raw, content_type="application/json", headers=sent
    )


def stored() -> int:
    return PendingInterrupt.objects.count()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"tool_name": "a", "tool_name": "b", "args": {}}', "duplicate_key"),
        ('{"tool_name": "a", "args": {"x": 1, "x": 2}}', "duplicate_key"),
        ('{"tool_name": "a", "args": {"x": NaN}}', "not_finite"),
        ('{"tool_name": "a", "args": {"x": -Infinity}}', "not_finite"),
        ('{"tool_name": "a", "args": {"x": 1e999}}', "not_finite"),
        ('{"tool_name": "a", "args": {"x": ' + "9" * 5000 + "}}", "not_json"),
        ('{"tool_name": "a", "args": ' + "[" * 60 + "]" * 60 + "}", "too_deep"),
        ('{"tool_name": "a", "args": {"x": "' + "y" * 400_000 + '"}}', "too_large"),
        (b'{"tool_name": "a\xff", "args": {}}', "not_utf8"),
        ('{"tool_name": "a", "args": {}', "not_json"),
        ('{"tool_name": "a", "args": {}} x', "not_json"),
        ("\x00", "not_json"),
        ('{"tool_name": "a\x00", "args": {}}', "not_json"),
    ],
)
def test_what_is_no_strict_json_is_refused(agent, text, reason):
    answer = send(agent, scenes.LIST, text)

    body = answer.json()
    assert (answer.status_code, body["code"]) == (400, "payload_rejected")
    assert body["reason"] == reason or reason == "not_json"
    assert stored() == 0


@pytest.mark.parametrize("text", ["[]", "null", '"x"', "1", "true"])
def test_what_is_no_object_is_refused(agent, text):
    url = agent.raised()
    for path in ("", "consume/", "outcome/", "give-back/", "cancel/"):
        answer = send(agent, f"{url}{path}" if path else scenes.LIST, text)
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed")


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"toolname": "x"}, "toolname"),
        ({"client": "x"}, "client"),
        ({"ref": "x"}, "ref"),
        ({"via": "admin"}, "via"),
        ({"interrupt_id": "x"}, "interrupt_id"),
        ({"submission": "x"}, "submission"),
        ({"limited": False}, "limited"),
        ({"status": "decided"}, "status"),
        ({"kind": 1}, "kind"),
        ({"kind": "order"}, "kind"),
        ({"tool_name": ["x"]}, "tool_name"),
        ({"tool_name": ""}, "tool_name"),
        ({"tool_name": None}, "tool_name"),
        ({"tool_name": "t" * 129}, "tool_name"),
        ({"tool_name": "a\x00"}, "tool_name"),
        ({"agent": "\ud800"}, "agent"),
        ({"thread_id": "t" * 256}, "thread_id"),
        ({"args": None}, "args"),
        ({"args": []}, "args"),
        ({"args": "{}"}, "args"),
        ({"args_schema": []}, "args_schema"),
        ({"args_schema": {"type": "thing"}}, "args_schema"),
        ({"args_schema": {"$ref": "#/nowhere"}}, "args"),
        ({"args_schema": {"required": ["x"]}}, "args"),
        ({"response_schema": {}}, "response_schema"),
        ({"payload": 0}, "payload"),
        ({"context": []}, "context"),
        ({"tags": "money"}, "tags"),
        ({"tags": [1]}, "tags"),
        ({"fixed": {"order": 1}}, "fixed"),
        ({"fixed": ["ordr"]}, "fixed"),
        ({"redact": [None]}, "redact"),
        ({"redact": ["amuont"]}, "redact"),
        ({"allowed_decisions": []}, "allowed_decisions"),
        ({"allowed_decisions": ["respond"]}, "allowed_decisions"),
        ({"allowed_decisions": [["approve"]]}, "allowed_decisions"),
        ({"priority": 1.0}, "priority"),
        ({"priority": True}, "priority"),
        ({"priority": 40_000}, "priority"),
        ({"priority": 10**400}, "priority"),
        ({"queue": 1}, "queue"),
        ({"why": {}}, "why"),
        ({"kind": "question"}, "tool_name"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_name(agent, change, loc):
    answer = agent.ask(**change)

    body = answer.json()
    assert answer.status_code == 400
    assert body["code"] in ("malformed", "payload_rejected")
    assert body["errors"][0]["loc"] == loc
    assert stored() == 0


@pytest.mark.parametrize("name", SPANS)
@pytest.mark.parametrize(
    "value",
    [
        *(0, -1, -0.0, 1e-9, MOST_SECONDS + 1, 1e308, 10**400, -(10**400)),
        *(True, "60", [60], {"seconds": 60}),
    ],
)
def test_a_span_that_is_none_is_refused(agent, name, value):
    answer = agent.ask(**{name: value})

    body = answer.json()
    assert answer.status_code == 400
    assert [one["loc"] for one in body["errors"]] == [name]
    assert stored() == 0


@pytest.mark.parametrize("value", [0.001, 1.5, 86_400, MOST_SECONDS])
def test_a_span_within_the_bounds_counts_from_the_databases_clock(
    agent, client_of, value
):
    url = agent.raised(**dict.fromkeys(SPANS, value))

    row = PendingInterrupt.objects.get()
    assert (row.expires_at - row.requested_at).total_seconds() == pytest.approx(
        value, abs=5
    )
    if value >= 60:
        client_of("reviewer").post(f"{url}approve/")
        body = agent.consume(url).json()
        assert None not in (body["execute_by"], body["outcome_due"])


@pytest.mark.parametrize("path", ["", "consume/", "outcome/", "give-back/"])
@pytest.mark.parametrize("key", [None, "", " ", "k" * 256])
def test_what_is_done_once_needs_a_key(agent, path, key):
    row = fetched(agent.client) if path else None
    url = scenes.url(row) if row else scenes.LIST
    body = {"outcome/": {"status": "succeeded"}, "": CALL}.get(path, {})

    answer = agent.post(f"{url}{path}", key, **body)

    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
    assert "Idempotency-Key" in answer.json()["detail"]
    assert row is None or kinds(row)[-1] == "consumed"
    assert stored() == (1 if row else 0)


@pytest.mark.parametrize("key", ["a\x00b", "\ud800"])
def test_a_key_that_no_server_lets_through_stores_nothing(agent, key):
    answer = agent.ask(key)

    assert answer.status_code == 400
    assert stored() == 0


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"status": "done"},
        {"status": None},
        {"status": ["succeeded"]},
        {"status": "succeeded", "error": 1},
        {"status": "succeeded", "outcome": 1},
        {"status": "succeeded", "result": "x" * 300_000},
    ],
)
def test_a_report_that_cannot_be_read_changes_nothing(agent, body):
    row = fetched(agent.client)

    answer = agent.post(scenes.url(row, "outcome"), "k", **body)

    assert answer.status_code == 400
    assert fresh(row).status == "decided"


@pytest.mark.parametrize("verb", ["consume", "give-back", "cancel"])
def test_a_field_that_means_nothing_is_refused(agent, verb):
    row = fetched(agent.client)

    answer = agent.post(scenes.url(row, verb), "k", keys="x")

    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
    assert answer.json()["errors"][0]["loc"] == "keys"
    assert kinds(row)[-1] == "consumed"


def test_text_of_any_kind_is_kept_and_comes_back(agent):
    odd = {"nul": "\x00", "half": "\ud800", "big": 10**300, "deep": [[[]]], "é": "é"}
    text = json.dumps({"tool_name": "refund", "args": odd})

    url = send(agent, scenes.LIST, text)["Location"]

    shown = agent.get(url).json()
    assert (shown["args"], shown["submission"]) == (odd, text)


def test_null_is_as_if_it_were_not_there(agent):
    url = agent.raised("k")

    again = agent.ask("k", **dict.fromkeys(set(remote_bodies.RAISE_FIELDS) - {*CALL}))

    assert (again.status_code, again["Location"]) == (200, url)


# queues


def test_a_client_raises_into_its_own_queue_and_those_it_may_name(agent):
    for slug in ("own", "further", "others"):
        ReviewQueue.objects.create(slug=slug)
    services.change_client(
        agent.client.pk, by=None, queue="own", limits={"queues": ["further"]}
    )

    assert agent.ask("1").json()["queue"] == "own"
    assert agent.ask("2", queue="own").json()["queue"] == "own"
    assert agent.ask("3", queue="further").json()["queue"] == "further"
    for slug in ("others", "default", "nowhere", "", "a\x00b"):
        answer = agent.ask("4", queue=slug)
        assert (answer.status_code, answer.json()["code"]) == (
            403,
            "client_not_allowed",
        )
        assert "own, further" in answer.json()["detail"]
    assert stored() == 3


def test_what_was_raised_is_found_after_its_queue_was_closed_to_the_client(agent):
    ReviewQueue.objects.create(slug="further")
    services.change_client(agent.client.pk, by=None, limits={"queues": ["further"]})
    url = agent.raised("1", queue="further")
    services.change_client(agent.client.pk, by=None, limits={})

    assert agent.ask("1", queue="further")["Location"] == url
    assert agent.ask("2", queue="further").status_code == 403
    assert InterruptEvent.objects.count() == 1

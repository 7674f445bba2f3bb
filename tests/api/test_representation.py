"""What is shown of an interrupt: exactly what is stored, minus what is hidden."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hitl_approvals import run_turn
from hitl_approvals.models import PendingInterrupt
from tests.api import agents_for_api, scenes

FIELDS = {
    *("id", "kind", "status", "revision", "generation", "turn", "agent", "thread_id"),
    *("tool_name", "tool_call_id", "tool_description", "args", "redacted"),
    *("args_digest", "payload", "response_schema", "tags", "queue", "priority"),
    *("allowed_decisions", "policy", "decision", "decision_args", "decision_value"),
    *("reason", "decided_by", "decided_via", "decided_at", "requested_at"),
    *("requested_by", "expires_at", "execute_by", "outcome_status", "outcome"),
    *("assignee", "claim_until"),
    *("resolved_at", "url", "client", "client_ref", "consumed_at", "outcome_due"),
}
ONLY_ALONE = {"args_schema", "context", "submission"}
LOGIN = {"host": "db-1", "token": "s3cr3t", "user": "root"}
TIMES = ("requested_at", "decided_at", "expires_at", "execute_by", "resolved_at")


def test_a_list_leaves_out_what_is_long(reviewer):
    row = scenes.pending()

    one = reviewer.get(scenes.url(row)).json()
    (listed,) = reviewer.get(scenes.LIST).json()["results"]

    assert set(one) == FIELDS | ONLY_ALONE
    assert set(listed) == FIELDS
    assert {name: one[name] for name in FIELDS} == listed


def test_a_waiting_call_is_shown_with_everything_that_a_decision_needs(
    reviewer, people
):
    row = scenes.pending(by=people["requester"])

    body = reviewer.get(scenes.url(row)).json()

    assert body["id"] == str(row.pk)
    assert (body["kind"], body["status"], body["revision"]) == (
        "tool_call",
        "pending",
        1,
    )
    assert body["turn"] == str(row.turn_id)
    assert body["tool_name"] == "api_refund"
    assert body["tool_description"] == "Refund an order to its customer."
    assert body["args"] == scenes.REFUND
    assert body["args_digest"] == row.args_digest
    assert set(body["args_schema"]["properties"]) == {"order", "amount", "note"}
    assert body["context"]["agent_reason"] == "I have to."
    assert body["allowed_decisions"] == ["approve", "edit", "reject"]
    assert body["requested_by"] == "requester"
    assert body["url"] == f"http://testserver{scenes.url(row)}"
    absent = ("decision", "decision_args", "reason", "decided_by", "outcome_status")
    assert [body[name] for name in absent] == [None] * len(absent)


@pytest.mark.parametrize("state", sorted(scenes.STATES))
def test_times_are_utc_whatever_the_site_shows(state, client_of, settings):
    settings.REST_FRAMEWORK = {"DATETIME_FORMAT": "%d.%m.%Y"}
    row = scenes.make(state)

    body = client_of("superuser").get(scenes.url(row)).json()

    for name in TIMES:
        stored = getattr(row, name)
        assert (body[name] is None) is (stored is None)
        if stored is not None:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", body[name])


def test_a_question_is_shown_without_a_call(reviewer):
    row = scenes.question({"text": "How many?"}, {"type": "integer"})

    body = reviewer.get(scenes.url(row)).json()

    assert (body["kind"], body["tool_name"], body["args"]) == ("question", None, None)
    assert body["payload"] == {"text": "How many?"}
    assert body["response_schema"] == {"type": "integer"}


def test_an_answer_of_null_is_an_answer(reviewer):
    row = scenes.question("Anything?")

    body = reviewer.post(
        scenes.url(row, "respond"), {"value": None}, format="json"
    ).json()

    assert (body["decision"], body["decision_value"]) == ("respond", None)


def test_arguments_that_cannot_be_read_do_not_break_the_list(reviewer):
    row = scenes.pending()
    PendingInterrupt.objects.filter(pk=row.pk).update(args_text='{"amount":')

    (listed,) = reviewer.get(scenes.LIST).json()["results"]

    assert listed["args"] is None


def login_row(reviewer: Any) -> PendingInterrupt:
    calls = [
        scenes.call("api_login", LOGIN, "c1"),
        {
            "id": "c2",
            "function": {"name": "api_login", "arguments": json.dumps(LOGIN)},
        },
        {"id": "c3", "function": {"name": "api_login", "arguments": '{"token": "s3c'}},
        scenes.call("api_refund", {"order": "s", "amount": 1, "note": "token"}, "c4"),
    ]
    return scenes.suspended(*calls).interrupts.get(tool_call_id="c1")


def test_hidden_arguments_are_shown_nowhere_among_the_arguments(client_of):
    client = client_of("superuser")
    row = login_row(client)

    one = client.get(scenes.url(row))
    other = client.get(scenes.url(row.turn.interrupts.get(tool_call_id="c4")))
    many = client.get(scenes.LIST)

    body = one.json()
    assert body["args"] == {"host": "db-1", "token": None, "user": "root"}
    assert body["redacted"] == ["token"]
    calls = body["context"]["messages"][1]["tool_calls"]
    assert calls[0]["args"] == body["args"]
    assert json.loads(calls[1]["function"]["arguments"]) == body["args"]
    assert calls[2]["function"]["arguments"] is None
    assert calls[3]["args"]["note"] == "token"
    assert b"s3c" not in many.content
    # What the user asked for is free text of the site's own: here, the calls.
    assert "s3c" not in json.dumps(body["context"]["messages"])
    assert "s3c" not in json.dumps(other.json()["context"]["messages"])


def test_an_edit_sends_hidden_arguments_back_as_they_were_shown(reviewer):
    row = scenes.pending("api_login", LOGIN)
    shown = reviewer.get(scenes.url(row)).json()["args"]

    response = reviewer.post(
        scenes.url(row, "edit"), {"args": {**shown, "user": "guest"}}, format="json"
    )

    body = response.json()
    assert response.status_code == 200
    assert body["decision_args"] == {"host": "db-1", "token": None, "user": "guest"}
    run_turn(row.turn_id)
    assert agents_for_api.RAN == [("api_login", {**LOGIN, "user": "guest"})]


def test_sending_back_what_was_shown_is_an_approval(reviewer):
    row = scenes.pending("api_login", LOGIN)
    shown = reviewer.get(scenes.url(row)).json()["args"]
    send = {"format": "json", "headers": {"Idempotency-Key": "k"}}

    first = reviewer.post(scenes.url(row, "edit"), {"args": shown}, **send)
    second = reviewer.post(scenes.url(row, "edit"), {"args": shown}, **send)

    assert first.json()["decision"] == "approve"
    assert second["Idempotency-Replayed"] == "true"


def test_a_fixed_argument_is_not_edited(reviewer):
    row = scenes.pending("api_login", LOGIN)

    response = reviewer.post(
        scenes.url(row, "edit"), {"args": {**LOGIN, "host": "db-2"}}, format="json"
    )

    assert response.status_code == 400
    assert [one["loc"] for one in response.json()["errors"]] == ["host"]


def test_a_refusal_does_not_quote_a_hidden_value(reviewer):
    # The agent's own call was taken leniently, the edited one is held to the schema.
    row = scenes.pending("api_login", LOGIN)
    PendingInterrupt.objects.filter(pk=row.pk).update(
        args_schema={"properties": {"token": {"type": "integer"}}}
    )

    for token in (None, "mine"):
        response = reviewer.post(
            scenes.url(row, "edit"),
            {"args": {**LOGIN, "token": token, "user": "guest"}},
            format="json",
        )
        (error,) = response.json()["errors"]
        assert error["loc"] == "token"
        assert "s3cr3t" not in error["message"]
        assert ("mine" in error["message"]) is (token is not None)

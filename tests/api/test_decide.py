"""Deciding over HTTP: bodies, revisions, keys, and what the loser is told."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_approvals import run_turn
from hitl_approvals.models import PendingInterrupt
from tests.api import agents_for_api, scenes

EDITED = {"order": "A-1", "amount": 900}


@pytest.mark.django_db(transaction=True)
def test_an_approval_runs_the_call_once_with_the_very_arguments(reviewer):
    row = scenes.pending()

    response = reviewer.post(scenes.url(row, "approve"), {}, format="json")

    assert response.status_code == 200
    assert response["Idempotency-Replayed"] == "false"
    assert response.json()["status"] == "decided"
    assert run_turn(row.turn_id) == "completed"
    assert agents_for_api.RAN == [("api_refund", {**scenes.REFUND, "note": ""})]
    shown = reviewer.get(scenes.url(row)).json()
    assert (shown["status"], shown["outcome_status"]) == ("resolved", "succeeded")


def test_an_approval_needs_no_body_at_all(reviewer):
    row = scenes.pending()

    assert reviewer.post(scenes.url(row, "approve")).status_code == 200


def test_a_rejection_gives_its_reason_to_the_agent(reviewer):
    row = scenes.pending()

    body = reviewer.post(
        scenes.url(row, "reject"), {"reason": "too much"}, format="json"
    ).json()

    assert (body["decision"], body["reason"]) == ("reject", "too much")
    assert body["decided_by"] == "reviewer"
    assert run_turn(row.turn_id) == "completed"
    row.turn.refresh_from_db()
    assert "too much" in row.turn.output[0]["content"]
    assert agents_for_api.RAN == []


def test_an_edit_runs_the_edited_arguments(reviewer):
    row = scenes.pending()

    body = reviewer.post(
        scenes.url(row, "edit"), {"args": EDITED, "reason": "half"}, format="json"
    ).json()

    assert (body["decision"], body["reason"]) == ("edit", "half")
    assert (body["args"], body["decision_args"]) == (scenes.REFUND, EDITED)
    run_turn(row.turn_id)
    assert agents_for_api.RAN == [("api_refund", {**EDITED, "note": ""})]


def test_an_edit_that_changes_nothing_is_an_approval(reviewer):
    row = scenes.pending()

    body = reviewer.post(
        scenes.url(row, "edit"), {"args": scenes.REFUND}, format="json"
    ).json()

    assert (body["decision"], body["decision_args"]) == ("approve", None)


def test_a_question_is_answered_within_its_schema(reviewer):
    row = scenes.question({"text": "How many?"}, {"type": "integer"})

    refused = reviewer.post(scenes.url(row, "respond"), {"value": "x"}, format="json")
    body = reviewer.post(scenes.url(row, "respond"), {"value": 7}, format="json").json()

    assert refused.status_code == 400
    assert refused.json()["code"] == "payload_rejected"
    assert (body["decision"], body["decision_value"]) == ("respond", 7)
    run_turn(row.turn_id)
    row.turn.refresh_from_db()
    assert row.turn.output == 7


def test_a_tool_may_offer_fewer_decisions(reviewer):
    row = scenes.pending("api_clean", {"order": "A-1"})

    response = reviewer.post(
        scenes.url(row, "edit"), {"args": {"order": "A-2"}}, format="json"
    )

    assert response.status_code == 400
    assert response.json()["code"] == "decision_not_allowed"


def test_the_second_one_is_told_who_decided_what(reviewer, client_of):
    row = scenes.pending()
    client_of("superuser").post(
        scenes.url(row, "reject"), {"reason": "no"}, format="json"
    )

    response = reviewer.post(scenes.url(row, "approve"), {}, format="json")

    body = response.json()
    assert (response.status_code, body["code"]) == (409, "already_decided")
    assert body["interrupt"]["decision"] == "reject"
    assert body["interrupt"]["decided_by"] == "superuser"
    assert "superuser" in body["detail"]


def test_the_same_key_gets_the_same_answer_and_writes_nothing(reviewer):
    row = scenes.pending()
    send = {"format": "json", "headers": {"Idempotency-Key": "k-1"}}
    first = reviewer.post(scenes.url(row, "edit"), {"args": EDITED}, **send)

    second = reviewer.post(scenes.url(row, "edit"), {"args": EDITED}, **send)

    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    assert first["Idempotency-Replayed"] == "false"
    assert second["Idempotency-Replayed"] == "true"
    assert scenes.events(row) == ["raised", "edited"]


def test_the_same_key_is_answered_after_the_call_ran(reviewer):
    row = scenes.pending()
    send = {"format": "json", "headers": {"Idempotency-Key": "k-1"}}
    reviewer.post(scenes.url(row, "approve"), {}, **send)
    run_turn(row.turn_id)

    response = reviewer.post(scenes.url(row, "approve"), {}, **send)

    assert response.status_code == 200
    assert response["Idempotency-Replayed"] == "true"
    assert response.json()["status"] == "resolved"
    assert len(agents_for_api.RAN) == 1


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("approve", {}),
        ("reject", {"reason": "no"}),
        ("edit", {"args": {"order": "A-1", "amount": 901}}),
    ],
)
def test_the_same_key_with_another_body_is_a_conflict(reviewer, verb, body):
    row = scenes.pending()
    send = {"format": "json", "headers": {"Idempotency-Key": "k-1"}}
    reviewer.post(scenes.url(row, "edit"), {"args": EDITED}, **send)

    response = reviewer.post(scenes.url(row, verb), body, **send)

    assert (response.status_code, response.json()["code"]) == (409, "key_reused")
    assert response.json()["interrupt"]["decision"] == "edit"
    assert scenes.events(row) == ["raised", "edited"]


def test_a_key_of_somebody_else_is_not_mine(reviewer, client_of):
    row = scenes.pending()
    send = {"format": "json", "headers": {"Idempotency-Key": "k-1"}}
    client_of("superuser").post(scenes.url(row, "approve"), {}, **send)

    response = reviewer.post(scenes.url(row, "approve"), {}, **send)

    assert (response.status_code, response.json()["code"]) == (409, "key_reused")


@pytest.mark.parametrize("key", ["", "  ", "k" * 256])
def test_a_key_that_is_none_is_refused(reviewer, key):
    row = scenes.pending()

    response = reviewer.post(
        scenes.url(row, "approve"), {}, format="json", headers={"Idempotency-Key": key}
    )

    assert (response.status_code, response.json()["code"]) == (400, "malformed")
    assert scenes.events(row) == ["raised"]


REVISIONS: list[tuple[Any, str | None, int]] = [
    (1, None, 200),
    (None, None, 200),
    (None, '"1"', 200),
    (None, 'W/"1"', 200),
    (None, "1", 200),
    (None, "*", 200),
    (1, '"1"', 200),
    (2, None, 409),
    (None, '"2"', 409),
    (0, None, 409),
    (-1, None, 409),
    (2**70, None, 409),
    (1, '"2"', 400),
    ("1", None, 400),
    (1.0, None, 400),
    (True, None, 400),
    ([1], None, 400),
    (None, '"1", "2"', 400),
    (None, '"one"', 400),
    (None, "", 400),
    (None, '"²"', 400),
]


@pytest.mark.parametrize(("revision", "header", "status"), REVISIONS)
def test_a_decision_may_name_the_revision_that_was_seen(
    reviewer, revision, header, status
):
    row = scenes.pending()
    body = {} if revision is None else {"revision": revision}
    headers = {} if header is None else {"If-Match": header}

    response = reviewer.post(
        scenes.url(row, "approve"), body, format="json", headers=headers
    )

    assert response.status_code == status
    code = {200: None, 400: "malformed", 409: "stale_review"}[status]
    assert response.json().get("code") == code
    assert (scenes.events(row) == ["raised"]) is (status != 200)


MALFORMED: list[tuple[str, Any, str]] = [
    ("approve", {"reason": "fine"}, "reason"),
    ("approve", {"type": "approve"}, "type"),
    ("approve", [], "a list"),
    ("approve", "approve", "a string"),
    ("approve", 7, "a number"),
    ("approve", {"revison": 1}, "revison"),
    ("reject", {}, "reason"),
    ("reject", {"reason": None}, "null"),
    ("reject", {"reason": 7}, "a number"),
    ("reject", {"reason": "  \n"}, "blank"),
    ("reject", {"reason": "\u200b"}, "blank"),
    ("reject", {"reason": "a\x00b"}, "NUL"),
    ("reject", {"reason": "no", "args": {}}, "args"),
    ("edit", {}, "args"),
    ("edit", {"args": None}, "null"),
    ("edit", {"args": [1]}, "a list"),
    ("edit", {"args": {}, "reason": 7}, "a number"),
    ("edit", {"args": {}, "value": 1}, "value"),
    ("edit", {"order": "A-1", "amount": 1}, "order"),
    ("respond", {}, "value"),
    ("respond", {"value": 1, "reason": "because"}, "reason"),
]


@pytest.mark.parametrize(("verb", "body", "named"), MALFORMED)
def test_a_malformed_decision_is_refused_by_name(reviewer, verb, body, named):
    row = scenes.pending()

    response = reviewer.post(scenes.url(row, verb), body, format="json")

    shown = response.json()
    assert (response.status_code, shown["code"]) == (400, "malformed")
    assert named in shown["detail"]
    assert shown["interrupt"]["status"] == "pending"
    assert scenes.events(row) == ["raised"]


def test_every_unknown_field_is_named(reviewer):
    row = scenes.pending()

    body = reviewer.post(
        scenes.url(row, "approve"), {"a": 1, "b": 2, "revision": 1}, format="json"
    ).json()

    assert [one["loc"] for one in body["errors"]] == ["a", "b"]


DO_NOT_FIT: list[tuple[Any, set[str]]] = [
    ({"order": "A-1", "amount": "much"}, {"amount"}),
    ({"order": "A-1"}, {""}),
    ({"order": "A-1", "amount": 1, "extra": 1}, {""}),
    ({"order": None, "amount": [1]}, {"order", "amount"}),
    ({}, {""}),
]


@pytest.mark.parametrize(("args", "places"), DO_NOT_FIT)
def test_arguments_that_do_not_fit_are_refused_field_by_field(reviewer, args, places):
    row = scenes.pending()

    response = reviewer.post(scenes.url(row, "edit"), {"args": args}, format="json")

    body = response.json()
    assert (response.status_code, body["code"]) == (400, "payload_rejected")
    assert body["reason"] == "does_not_fit"
    assert {one["loc"] for one in body["errors"]} == places
    assert all(one["message"] for one in body["errors"])
    assert body["interrupt"]["revision"] == 1
    assert scenes.events(row) == ["raised"]


@pytest.mark.parametrize(
    "text",
    [
        '{"amount":999999,"order":"A-1"}',
        '{"amount":1200, "order":"A-1"}',
        '{"amount":1200,"order":"Ä-1"}',
        '{"amount":',
        "",
    ],
)
@pytest.mark.parametrize(
    ("verb", "body"),
    [("approve", {}), ("edit", {"args": EDITED}), ("edit", {"args": {"order": None}})],
)
def test_nothing_runs_from_arguments_that_were_changed_in_the_database(
    reviewer, text, verb, body
):
    row = scenes.pending()
    PendingInterrupt.objects.filter(pk=row.pk).update(args_text=text)

    response = reviewer.post(scenes.url(row, verb), body, format="json")

    assert (response.status_code, response.json()["code"]) == (409, "snapshot_mismatch")
    assert scenes.events(row) == ["raised"]


@pytest.mark.parametrize(
    "pk",
    [
        "7",
        "nonsense",
        "a.b",
        "%00",
        "%ED%A0%80",
        "00000000-0000-0000-0000-000000000000",
        "0" * 5000,
    ],
)
@pytest.mark.parametrize("verb", ["", "approve/"])
def test_an_unknown_id_is_not_found(reviewer, pk, verb):
    send = reviewer.post if verb else reviewer.get

    response = send(f"{scenes.LIST}{pk}/{verb}")

    assert response.status_code == 404
    assert response.json() == {
        "code": "interrupt_not_found",
        "detail": "There is no such interrupt, or you may not see it.",
        "interrupt": None,
    }
    assert response["X-Request-ID"]


def test_a_null_argument_of_an_unknown_interrupt_is_not_found(reviewer):
    response = reviewer.post(
        f"{scenes.LIST}7/edit/", {"args": {"order": None}}, format="json"
    )

    assert response.status_code == 404

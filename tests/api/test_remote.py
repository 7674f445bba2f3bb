"""Requests of agents that run elsewhere, over REST: listed, shown, decided, settled."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api import scenes
from tests.support import remote
from tests.support.remote import ARGS, SCHEMA, fresh

pytestmark = pytest.mark.django_db


def test_it_is_listed_and_shown_without_a_turn(reviewer):
    row = remote.ask(ref="order-7", context={"asked": "refund 7"})

    (listed,) = reviewer.get(scenes.LIST).json()["results"]
    shown = reviewer.get(scenes.url(row)).json()

    for body in (listed, shown):
        assert (body["turn"], body["requested_by"]) == (None, None)
        assert (body["client"], body["client_ref"], body["agent"]) == (
            "billing",
            "order-7",
            "billing",
        )
        assert (body["consumed_at"], body["outcome_due"]) == (None, None)
        assert body["args"] == ARGS
    assert shown["context"]["asked"] == "refund 7"


def test_a_turns_interrupt_is_no_clients(reviewer):
    body = reviewer.get(scenes.url(scenes.pending())).json()

    assert (body["client"], body["client_ref"]) == (None, None)


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("approve", {}),
        ("reject", {"reason": "no"}),
        ("edit", {"args": {**ARGS, "amount": 5}}),
    ],
)
def test_it_is_decided(reviewer, verb, body):
    row = remote.ask(args_schema=SCHEMA)

    answer = reviewer.post(scenes.url(row, verb), body, format="json")

    assert (answer.status_code, answer.json()["decision"]) == (200, verb)
    assert fresh(row).decided_by_label == "reviewer"
    again = reviewer.post(scenes.url(row, verb), body, format="json")
    assert again.status_code == 409


def test_a_question_is_answered(reviewer):
    row = remote.ask_question(response_schema={"type": "integer"})

    wrong = reviewer.post(scenes.url(row, "respond"), {"value": "x"}, format="json")
    right = reviewer.post(scenes.url(row, "respond"), {"value": 7}, format="json")

    assert (wrong.status_code, right.status_code) == (400, 200)
    assert remote.fetch(row).value == 7


def test_an_edit_that_does_not_fit_its_schema_stores_nothing(reviewer):
    row = remote.ask(args_schema=SCHEMA)

    answer = reviewer.post(
        scenes.url(row, "edit"), {"args": {"order": "7"}}, format="json"
    )

    assert answer.status_code == 400
    assert fresh(row).status == "pending"


def test_what_came_of_it_is_shown(reviewer):
    row = remote.fetched()
    body = reviewer.get(scenes.url(row)).json()
    assert body["consumed_at"].endswith("Z")
    assert body["outcome_due"].endswith("Z")

    remote.report(row, result={"id": 9})

    body = reviewer.get(scenes.url(row)).json()
    assert (body["outcome_status"], body["outcome"]) == ("succeeded", {"id": 9})


@pytest.mark.parametrize(
    ("body", "code", "status"),
    [
        ({"answer": "happened", "result": 1}, 200, "resolved"),
        ({"answer": "give_up"}, 200, "cancelled"),
        ({"answer": "run_again"}, 409, "in_doubt"),
    ],
)
def test_a_doubt_is_settled_and_never_runs_again(client_of, body, code, status):
    row = remote.in_doubt()

    answer = client_of("superuser").post(
        scenes.url(row, "settle"), {**body, "note": "n"}, format="json"
    )

    assert answer.status_code == code
    assert fresh(row).status == status
    if code == 409:
        assert "nothing here can run it again" in answer.json()["detail"]


def test_it_has_no_turn_that_could_be_reviewed_again(client_of):
    row = remote.approved()

    answer = client_of("superuser").post(scenes.url(row, "re-review"))

    assert answer.status_code == 409
    assert fresh(row).status == "decided"


def test_a_list_of_them_takes_no_more_queries_than_one(reviewer):
    remote.ask()
    reviewer.get(scenes.LIST)  # the rights of the person are kept from then on
    with CaptureQueriesContext(connection) as one:
        reviewer.get(scenes.LIST)
    for number in range(5):
        remote.ask(remote.a_client(f"client {number}"))

    with CaptureQueriesContext(connection) as many:
        assert len(reviewer.get(scenes.LIST).json()["results"]) == 6

    assert len(many) == len(one)

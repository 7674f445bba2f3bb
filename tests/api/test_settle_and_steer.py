"""Settling doubts and steering turns over REST: right, body, effect, refusal."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from hitl_approvals import run_turn, services
from hitl_approvals.models import (
    AgentTurn,
    DbNow,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from tests.api import agents_for_api, scenes

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def operator(people: dict[str, User]) -> APIClient:
    rights = (
        "view_pendinginterrupt",
        "settle_pendinginterrupt",
        "administer_pendinginterrupt",
        "view_agentturn",
    )
    client = APIClient()
    client.force_authenticate(scenes.user("operator", *rights))
    return client


def _in_doubt() -> PendingInterrupt:
    row = scenes.pending("api_flaky", {"order": "A-1"})
    services.decide(row.pk, {"type": "approve"}, by=None, via="test")
    assert run_turn(row.turn_id) == "suspended"
    row.refresh_from_db()
    assert row.status == "in_doubt"
    return row


def _stopped() -> PendingInterrupt:
    row = scenes.pending()
    services.decide(row.pk, {"type": "approve"}, by=None, via="test")
    other = {"calls": [scenes.call("api_refund", {"order": "B-2", "amount": 1})]}
    AgentTurn.objects.filter(pk=row.turn_id).update(input=other)
    assert run_turn(row.turn_id) == "needs_attention"
    return row


def _settle(client: APIClient, row: PendingInterrupt, **body: Any) -> Any:
    return client.post(scenes.url(row, "settle"), body, format="json")


def _turn(client: APIClient, row: PendingInterrupt, verb: str, **body: Any) -> Any:
    return client.post(f"{scenes.TURNS}{row.turn_id}/{verb}/", body, format="json")


def test_it_happened_resolves_the_call_and_the_turn_goes_on(
    operator: APIClient,
) -> None:
    row = _in_doubt()

    answer = _settle(operator, row, answer="happened", result=None, note="in the log")

    assert answer.status_code == 200, answer.json()
    assert answer.json()["status"] == "resolved"
    assert run_turn(row.turn_id) == "completed"
    event = InterruptEvent.objects.get(subject_id=row.pk, type="settled_happened")
    assert (event.actor, event.via) == ("operator", "api")
    assert event.detail["note"] == "in the log"


def test_run_again_is_refused_before_the_deadline_with_the_time_left(
    operator: APIClient,
) -> None:
    row = _in_doubt()

    early = _settle(operator, row, answer="run_again")

    assert early.status_code == 409
    assert " s at the earliest" in early.json()["detail"]
    TurnStep.objects.filter(interrupt=row).update(hard_deadline=DbNow())
    later = _settle(operator, row, answer="run_again")
    assert later.status_code == 200
    assert (later.json()["status"], later.json()["generation"]) == ("decided", 2)


def test_giving_up_tells_the_model_that_nobody_knows(operator: APIClient) -> None:
    row = _in_doubt()

    answer = _settle(operator, row, answer="give_up", note="no log")

    assert answer.json()["status"] == "cancelled"
    assert run_turn(row.turn_id) == "completed"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"answer": "maybe"},
        {"answer": "give_up", "result": 1},
        {"answer": "happened", "reslut": 1},
        {"answer": "happened", "note": 1},
    ],
)
def test_a_settlement_that_does_not_fit_is_refused_and_nothing_is_stored(
    operator: APIClient, body: dict[str, Any]
) -> None:
    row = _in_doubt()

    answer = _settle(operator, row, **body)

    assert answer.status_code == 400
    row.refresh_from_db()
    assert row.status == "in_doubt"


def test_a_settlement_of_an_older_revision_is_stale(operator: APIClient) -> None:
    row = _in_doubt()

    answer = _settle(operator, row, answer="give_up", revision=row.revision - 1)

    assert (answer.status_code, answer.json()["code"]) == (409, "stale_review")
    row.refresh_from_db()
    assert row.status == "in_doubt"


def test_settling_needs_its_right_and_a_doubt(
    operator: APIClient, client_of: Any
) -> None:
    row = _in_doubt()
    open_row = scenes.pending()

    assert _settle(client_of("viewer"), row, answer="give_up").status_code in (403, 404)
    assert _settle(client_of("stranger"), row, answer="give_up").status_code == 404
    assert _settle(operator, open_row, answer="give_up").status_code == 409
    row.refresh_from_db()
    assert row.status == "in_doubt"


def test_a_turn_is_cancelled_once_and_its_call_never_runs(operator: APIClient) -> None:
    row = scenes.pending()

    first = _turn(operator, row, "cancel", reason="wrong customer")
    second = _turn(operator, row, "cancel")

    assert (first.status_code, first.json()["status"]) == (200, "cancelled")
    assert second.status_code == 409
    assert second.json()["code"] == "transition_not_allowed"
    row.refresh_from_db()
    assert row.status == "cancelled"
    assert agents_for_api.RAN == []


def test_a_diverged_turn_is_reviewed_anew_and_retried(operator: APIClient) -> None:
    row = _stopped()

    reviewed = operator.post(scenes.url(row, "re-review"), {}, format="json")
    retried = _turn(operator, row, "retry")

    assert reviewed.json()["outcome_status"] == "superseded"
    assert (retried.status_code, retried.json()["status"]) == (200, "ready")
    assert run_turn(row.turn_id) == "suspended"
    assert agents_for_api.RAN == []


def test_a_stopped_turn_is_restarted_with_other_input(operator: APIClient) -> None:
    row = _stopped()
    prompt = {"calls": [scenes.call("api_refund", scenes.REFUND)]}

    answer = _turn(operator, row, "restart", input=prompt)

    assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    assert answer.json()["input"] == prompt
    assert run_turn(row.turn_id) == "suspended"


@pytest.mark.parametrize("verb", ["cancel", "retry", "restart"])
def test_steering_is_for_those_who_may_and_refuses_unknown_fields(
    operator: APIClient, client_of: Any, verb: str
) -> None:
    row = scenes.pending()

    assert _turn(client_of("viewer"), row, verb).status_code in (403, 404)
    assert _turn(client_of("stranger"), row, verb).status_code == 404
    assert _turn(operator, row, verb, why="x").status_code == 400
    assert AgentTurn.objects.get(pk=row.turn_id).status == "suspended"

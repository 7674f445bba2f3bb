"""Forking over REST: right, body, effect, refusal."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from hitl_approvals import run_turn, services
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from tests.api import agents_for_api, scenes

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def boss(people: dict[str, User]) -> APIClient:
    client = APIClient()
    rights = ("administer_pendinginterrupt", "view_agentturn")
    client.force_authenticate(scenes.user("boss", *rights))
    return client


def _fork(client: APIClient, row: PendingInterrupt, body: Any = None, **kw: Any) -> Any:
    address = f"{scenes.TURNS}{row.turn_id}/fork/"
    return client.post(address, body or {}, format="json", **kw)


def test_a_finished_turn_is_forked_and_both_show_each_other(boss: APIClient) -> None:
    row = scenes.resolved()
    ran = list(agents_for_api.RAN)

    answer = _fork(boss, row, {"at": str(row.pk), "thread_id": "branch"})

    assert answer.status_code == 201, answer.json()
    body = answer.json()
    assert answer["Location"] == body["url"]
    assert (body["status"], body["undecided"]) == ("suspended", 1)
    assert (body["parent"], body["forked_at"]) == (str(row.turn_id), str(row.pk))
    assert (body["thread_id"], body["left_out"]) == ("branch", [])
    origin = boss.get(f"{scenes.TURNS}{row.turn_id}/").json()
    assert origin["forks"] == [
        {"id": body["id"], "status": "suspended", "url": body["url"]}
    ]
    assert (origin["parent"], origin["forked_at"]) == (None, None)
    (interrupt,) = body["interrupts"]
    shown = boss.get(interrupt["url"]).json()
    assert shown["context"]["forked_from"]["interrupt"] == str(row.pk)
    services.decide(
        interrupt["id"], {"type": "reject", "reason": "no"}, by=None, via="t"
    )
    assert run_turn(body["id"]) == "completed"
    assert ran == agents_for_api.RAN
    event = InterruptEvent.objects.get(type="turn_forked")
    assert (event.subject_id, event.actor, event.via) == (row.turn_id, "boss", "api")


def test_a_call_of_unknown_fate_is_named(boss: APIClient) -> None:
    row = scenes.pending("api_flaky", {"order": "A-1"})
    services.decide(row.pk, {"type": "approve"}, by=None, via="test")
    assert run_turn(row.turn_id) == "suspended"

    body = _fork(boss, row).json()

    (left,) = body["left_out"]
    assert (left["name"], left["status"]) == ("api_flaky", "unknown")


def test_the_same_key_makes_one_fork(boss: APIClient) -> None:
    row = scenes.pending()
    key = {"headers": {"Idempotency-Key": "k"}}

    first, second = _fork(boss, row, **key), _fork(boss, row, **key)
    other = _fork(boss, row, {"at": str(row.pk)}, **key)

    assert (first.status_code, second.status_code) == (201, 200)
    assert first["Idempotency-Replayed"] == "false"
    assert second["Idempotency-Replayed"] == "true"
    assert first.json() == second.json()
    assert (other.status_code, other.json()["code"]) == (409, "key_reused")
    assert AgentTurn.objects.filter(parent=row.turn_id).count() == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"at": 7}, "malformed"),
        ({"at": "no id"}, "payload_rejected"),
        ({"at": str(uuid.uuid4())}, "payload_rejected"),
        ({"thread_id": ""}, "malformed"),
        ({"thread": "x"}, "malformed"),
    ],
)
def test_a_fork_that_does_not_fit_is_refused_and_nothing_is_stored(
    boss: APIClient, body: dict[str, Any], code: str
) -> None:
    row = scenes.pending()

    answer = _fork(boss, row, body)

    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert AgentTurn.objects.count() == 1


def test_only_who_administers_may_fork(client_of: Any, people: dict[str, User]) -> None:
    row = scenes.pending(by=people["requester"])

    assert _fork(client_of("requester"), row).status_code == 403
    assert _fork(client_of("viewer"), row).status_code == 404
    assert _fork(client_of("stranger"), row).status_code == 404
    assert AgentTurn.objects.count() == 1


def test_reading_does_not_fork(boss: APIClient) -> None:
    row = scenes.pending()

    assert boss.get(f"{scenes.TURNS}{row.turn_id}/fork/").status_code == 405
    assert boss.post(f"{scenes.TURNS}{uuid.uuid4()}/fork/").status_code == 404


def test_whoever_started_the_turn_sees_only_forks_that_may_be_seen(
    boss: APIClient, client_of: Any, people: dict[str, User]
) -> None:
    row = scenes.pending(by=people["requester"])
    fork = _fork(boss, row).json()
    AgentTurn.objects.filter(pk=fork["id"]).update(requested_by=None)

    shown = client_of("requester").get(f"{scenes.TURNS}{row.turn_id}/").json()

    assert shown["forks"] == []

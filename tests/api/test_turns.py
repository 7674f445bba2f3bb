"""Starting and reading turns."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from hitl_approvals import run_turn
from hitl_approvals.models import AgentTurn
from tests.api import agents_for_api, scenes

BODY: dict[str, Any] = {
    "agent": "api_agent",
    "input": {"calls": [scenes.call("api_refund", scenes.REFUND)]},
}
FIELDS = {
    *("id", "agent", "agent_version", "thread_id", "status", "undecided", "input"),
    *("output", "error", "attempts", "requested_by", "created_at", "finished_at"),
    *("interrupts", "parent", "forked_at", "left_out", "forks", "url"),
}


def start(client: APIClient, body: Any = BODY, key: str | None = None) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(scenes.TURNS, body, format="json", headers=headers)


@pytest.mark.django_db(transaction=True)
def test_a_turn_is_started_run_decided_and_read(requester, reviewer):
    started = start(requester)

    assert started.status_code == 202
    body = started.json()
    assert set(body) == FIELDS
    assert (body["status"], body["interrupts"]) == ("ready", [])
    assert body["requested_by"] == "requester"
    assert started["Location"] == body["url"]
    assert run_turn(body["id"]) == "suspended"

    waiting = requester.get(body["url"]).json()
    (interrupt,) = waiting["interrupts"]
    assert (waiting["status"], waiting["undecided"]) == ("suspended", 1)
    assert interrupt["status"] == "pending"
    assert requester.post(interrupt["url"] + "approve/").status_code == 403
    assert reviewer.post(interrupt["url"] + "approve/").status_code == 200
    assert run_turn(body["id"]) == "completed"

    ended = requester.get(body["url"]).json()
    assert (ended["status"], ended["error"]) == ("completed", None)
    assert ended["output"][0]["status"] == "ok"
    assert ended["finished_at"].endswith("Z")
    assert [one["status"] for one in ended["interrupts"]] == ["resolved"]
    assert len(agents_for_api.RAN) == 1


def test_thread_and_options_reach_the_turn(requester):
    body = start(
        requester,
        {**BODY, "thread_id": "ticket 7", "execute_options": {"depth": 10**30}},
    ).json()

    turn = AgentTurn.objects.get(pk=body["id"])
    assert body["thread_id"] == "ticket 7"
    assert turn.execute_options == {"depth": 10**30}


def test_without_a_thread_a_turn_is_its_own(requester):
    body = start(requester, {**BODY, "thread_id": None}).json()

    assert body["thread_id"] == body["id"]


def test_the_same_key_and_body_start_one_turn(requester):
    first, second = start(requester, key="k"), start(requester, key="k")

    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json() == second.json()
    assert first["Location"] == second["Location"]
    assert AgentTurn.objects.count() == 1


def test_a_replayed_start_shows_the_turn_as_it_is_now(requester):
    pk = start(requester, key="k").json()["id"]
    run_turn(pk)

    assert start(requester, key="k").json()["status"] == "suspended"


@pytest.mark.parametrize(
    "change",
    [{"input": {"calls": []}}, {"thread_id": "t"}, {"execute_options": {}}],
)
def test_the_same_key_with_another_body_is_a_conflict(requester, change):
    start(requester, key="k")

    response = start(requester, {**BODY, **change}, key="k")

    assert (response.status_code, response.json()["code"]) == (409, "key_reused")
    assert response.json()["interrupt"] is None
    assert AgentTurn.objects.count() == 1


def test_a_key_belongs_to_who_used_it(requester, client_of):
    mine = start(requester, key="k").json()
    theirs = start(client_of("superuser"), key="k")

    assert theirs.status_code == 202
    assert theirs.json()["id"] != mine["id"]


def test_without_a_key_every_start_is_a_turn(requester):
    assert start(requester).json()["id"] != start(requester).json()["id"]


ROLES = [
    ("superuser", 202),
    ("requester", 202),
    ("reviewer", 403),
    ("viewer", 403),
    ("stranger", 403),
    ("anonymous", 401),
]


@pytest.mark.parametrize(("role", "status"), ROLES)
def test_starting_needs_the_right_to(client_of, role, status):
    response = start(client_of(role))

    assert response.status_code == status
    assert AgentTurn.objects.count() == (1 if status == 202 else 0)
    if status == 403:
        assert response.json()["code"] == "reviewer_not_allowed"


@pytest.mark.parametrize("role", ["reviewer", "viewer", "stranger"])
def test_the_turn_of_others_is_not_there(client_of, requester, role):
    address = start(requester).json()["url"]

    response = client_of(role).get(address)

    assert response.status_code == 404
    assert response.json()["code"] == "turn_not_found"


def test_with_the_right_to_view_turns_all_are_there(requester, people):
    address = start(requester).json()["url"]
    client = APIClient()
    client.force_authenticate(scenes.user("auditor", "view_agentturn"))

    assert client.get(address).status_code == 200


@pytest.mark.parametrize("pk", ["7", "%00", "00000000-0000-0000-0000-000000000000"])
def test_an_unknown_turn_is_not_found(requester, pk):
    response = requester.get(f"{scenes.TURNS}{pk}/")

    assert (response.status_code, response.json()["code"]) == (404, "turn_not_found")


MALFORMED: list[tuple[Any, str, str]] = [
    ({"input": 1}, "malformed", "agent"),
    ({"agent": "api_agent"}, "malformed", "input"),
    ({"agent": 7, "input": 1}, "malformed", "a number"),
    ({"agent": None, "input": 1}, "malformed", "null"),
    ({**BODY, "run": True}, "malformed", "run"),
    ({**BODY, "key": "k"}, "malformed", "key"),
    ({**BODY, "requested_by": 1}, "malformed", "requested_by"),
    ({**BODY, "thread_id": 7}, "malformed", "a number"),
    ({**BODY, "thread_id": " "}, "malformed", "thread_id"),
    ({**BODY, "thread_id": "x" * 256}, "malformed", "255"),
    ({**BODY, "thread_id": "a\x00b"}, "malformed", "NUL"),
    ({**BODY, "execute_options": []}, "malformed", "a list"),
    ([], "malformed", "a list"),
    ({**BODY, "agent": "nobody"}, "agent_not_found", "nobody"),
    ({**BODY, "agent": "a\x00" * 500}, "agent_not_found", ""),
    ({**BODY, "input": "x" * 262_140}, "payload_rejected", "larger"),
]


@pytest.mark.parametrize(("body", "code", "named"), MALFORMED)
def test_what_starts_no_turn_is_refused_by_name(requester, body, code, named):
    response = start(requester, body)

    assert (response.status_code, response.json()["code"]) == (400, code)
    assert named in response.json()["detail"]
    assert AgentTurn.objects.count() == 0


def test_any_json_is_an_input(requester):
    for value in (None, 0, "a\x00b", [], 10**400):
        body = start(requester, {"agent": "api_agent", "input": value}).json()
        assert body["input"] == value

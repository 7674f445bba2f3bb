"""What a token of an agent client opens: its own rows, and nothing that is for people."""

from __future__ import annotations

import re

import pytest
from rest_framework.settings import api_settings
from rest_framework.test import APIClient
from rest_framework.throttling import UserRateThrottle

from hitl_approvals import permissions, services
from hitl_approvals.api.clients import bearer_token
from hitl_approvals.api.remote import CLIENT_ONLY
from hitl_approvals.api.urls import router
from hitl_approvals.figures.scope import Scope
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.types import AgentPrincipal
from tests.api import scenes
from tests.api.remote_scenes import Agent
from tests.support.remote import ask

pytestmark = pytest.mark.django_db
OPEN = {
    ("interrupt", "list"),
    ("interrupt", "retrieve"),
    ("interrupt", "events"),
    ("interrupt", "cancel"),
    *(("interrupt", action) for action in CLIENT_ONLY),
}
"""All that is open to clients; whatever is added to the API is closed to them."""


def endpoints() -> dict[tuple[str, str], tuple[str, str]]:
    """Return method and address of every action of every view."""
    found = {}
    for prefix, viewset, basename in router.registry:
        for route in router.get_routes(viewset):
            path = re.sub(r"^\^?\{prefix\}|\$$", "", route.url)
            path = path.replace("{lookup}", "{pk}").replace("{trailing_slash}", "/")
            mapping = router.get_method_map(viewset, route.mapping)
            for method, action in mapping.items():
                found[basename, action] = (method, f"/api/{prefix}{path}")
    return found


CLOSED = sorted(set(endpoints()) - OPEN)


def test_every_open_action_is_there():
    assert set(endpoints()) >= OPEN


@pytest.mark.parametrize("action", CLOSED, ids=".".join)
@pytest.mark.parametrize("whose", ["own", "turn's", "nobody's"])
def test_what_is_for_people_is_closed_to_clients(agent, action, whose):
    row = ask(agent.client) if whose == "own" else scenes.pending()
    if whose == "nobody's":
        pk = "019a3f6e-0000-7000-8000-000000000000"
    else:
        pk = row.turn_id if action[0] == "turn" and row.turn_id else row.pk
    method, path = endpoints()[action]

    answer = agent.http.generic(
        method.upper(),
        path.replace("{pk}", str(pk)),
        "{}",
        content_type="application/json",
        headers={"Idempotency-Key": "k"},
    )

    body = answer.json()
    assert (answer.status_code, body["code"]) == (403, "client_not_allowed")
    assert "takes a person's account" in body["detail"]
    # Shown is what it could read anyway.
    assert (body["interrupt"] is not None) is (
        whose == "own" and "{pk}" in path and action[0] == "interrupt"
    )
    assert scenes.events(row) == ["raised"]


@pytest.mark.parametrize("role", ["superuser", "reviewer", "stranger"])
@pytest.mark.parametrize("action", sorted(CLIENT_ONLY))
def test_what_agents_do_is_closed_to_people(agent, client_of, role, action):
    row = ask(agent.client)
    method, path = endpoints()["interrupt", action]

    answer = client_of(role).post(
        path.replace("{pk}", str(row.pk)),
        {},
        format="json",
        headers={"Idempotency-Key": "k"},
    )

    assert method == "post"
    assert answer.status_code == 403
    assert answer.json()["code"] == "reviewer_not_allowed"
    assert "the token of an agent client" in answer.json()["detail"]
    assert scenes.events(row) == ["raised"]


@pytest.mark.parametrize("action", sorted(OPEN), ids=".".join)
def test_another_clients_row_and_a_turns_are_not_there(agent, action):
    method, path = endpoints()[action]
    if "{pk}" not in path:
        return
    body = {"status": "unknown"} if action[1] == "outcome" else {}
    for row in (ask(Agent("other").client), scenes.pending()):
        answer = agent.http.generic(
            method.upper(),
            path.replace("{pk}", str(row.pk)),
            "" if method == "get" else str(body).replace("'", '"'),
            content_type="application/json",
            headers={"Idempotency-Key": "k"},
        )
        assert (answer.status_code, answer.json()["code"]) == (
            404,
            "interrupt_not_found",
        )
        assert answer.json()["interrupt"] is None
        assert scenes.events(row) == ["raised"]


@pytest.mark.parametrize("pk", ["no-uuid", "%00", "x" * 300, "é", "1"])
def test_what_is_no_id_is_not_found(agent, pk):
    for path, body in (
        ("", None),
        ("consume/", {}),
        ("outcome/", {"status": "failed"}),
        ("give-back/", {}),
        ("cancel/", {}),
    ):
        url = f"{scenes.LIST}{pk}/{path}"
        answer = agent.get(url) if body is None else agent.post(url, "k", **body)
        assert (answer.status_code, answer.json()["code"]) == (
            404,
            "interrupt_not_found",
        )


def test_a_client_lists_its_own_and_nobody_elses(agent):
    mine = [ask(agent.client) for _ in range(3)]
    ask(Agent("other").client)
    scenes.pending()

    listed = agent.get(scenes.LIST).json()["results"]
    filtered = agent.get(scenes.LIST, status="resolved").json()["results"]

    assert {one["id"] for one in listed} == {str(row.pk) for row in mine}
    assert filtered == []


def test_a_client_holds_nothing(agent):
    agent.raised()

    answer = agent.get(scenes.LIST, assignee="me")

    assert (answer.status_code, answer.json()["results"]) == (200, [])
    assert len(agent.get(scenes.LIST, assignee="none").json()["results"]) == 1


def test_whoever_calls_by_a_token_is_nobody_with_a_right(agent):
    row = ask(agent.client)
    scenes.pending()
    principal = AgentPrincipal(agent.client.pk, agent.client.name)

    assert principal.is_authenticated
    for held in (
        principal.is_active,
        principal.is_staff,
        principal.is_superuser,
        principal.is_anonymous,
        principal.has_perm("x"),
        principal.has_perms(["x"]),
        principal.has_module_perms("hitl_approvals"),
    ):
        assert held is False
    assert str(principal) == principal.get_username() == "client billing"
    assert list(permissions.visible_to(principal)) == [row]
    assert permissions.may_view(principal, row)
    assert not permissions.may_view(principal, scenes.pending())
    for nothing in (
        permissions.decidable_by(principal),
        permissions.queues_visible_to(principal),
        permissions.turns_visible_to(principal),
        Scope.of(principal).interrupts(),
        Scope.of(principal).turns(),
    ):
        assert not nothing.exists()
    assert not permissions.may_decide(principal, row)


@pytest.mark.parametrize(
    ("path", "code"),
    [("interrupts/{own}", 200), ("interrupts/{turns}", 404), ("turns/{turn}", 403)],
)
def test_to_wait_opens_nothing_more(agent, path, code):
    turns = scenes.pending()
    ids = {"own": ask(agent.client).pk, "turns": turns.pk, "turn": turns.turn_id}

    answer = agent.get(f"/api/{path.format(**ids)}/", wait="0.1")

    assert answer.status_code == code
    wrong = APIClient().get(
        f"/api/{path.format(**ids)}/?wait=0.1",
        headers={"Authorization": "Bearer hac_x"},
    )
    assert wrong.status_code == 401


def test_the_sites_own_throttles_count_each_client_by_itself(agent, rf):
    class Site(UserRateThrottle):
        rate = "1/day"

    keys = set()
    for client in (agent.client, Agent("other").client):
        request = rf.get("/")
        request.user = AgentPrincipal(client.pk, client.name)
        assert request.user.id == request.user.pk
        keys.add(Site().get_cache_key(request, None))
    assert len(keys) == 2


# tokens


@pytest.mark.parametrize(
    "given",
    [
        "Bearer hac_",
        "Bearer hac_" + "x" * 43,
        "Bearer hac_x y",
        "bearer   hac_" + "x" * 43,
        "BEARER hac_" + "x" * 5000,
        "Bearer hac_\u00e9\u00ff",
        "Bearer hac_x,Bearer hac_y",
        "Bearer hac_x\x00",
        "Bearer hac_\ud800",
        "Bearer\thac_x",
        "Bearer hac_x\n",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_wrong_token_is_not_let_in(agent, given, method):
    answer = APIClient().generic(
        method, scenes.LIST, "{", headers={"Authorization": given}
    )

    assert (answer.status_code, answer.json()["code"]) == (401, "authentication_failed")
    assert answer["WWW-Authenticate"].startswith("Bearer ")
    assert answer["X-Request-ID"]
    assert not PendingInterrupt.objects.exists()


def test_nobody_is_told_what_is_wrong_with_a_token(agent):
    told = set()
    for break_it in (
        lambda: agent.http.credentials(HTTP_AUTHORIZATION="Bearer hac_" + "x" * 43),
        lambda: services.rotate_token(agent.client.pk, by=None),
        lambda: services.revoke_client(agent.client.pk, by=None),
    ):
        break_it()
        answer = agent.get(scenes.LIST)
        assert answer.status_code == 401
        told.add(answer.content)
        agent.http.credentials(HTTP_AUTHORIZATION=f"Bearer {agent.token}")
    assert len(told) == 1


@pytest.mark.parametrize(
    "given",
    [
        "",
        "hac_x",
        "Token hac_x",
        "Basic hac_x",
        "Bearer",
        "Bearer eyJ0.e30.x",
        "Bearer xhac_x",
        "Bearer HAC_x",
        "Bearers hac_x",
    ],
)
def test_every_other_credential_is_the_sites_business(rf, given):
    assert bearer_token(rf.get("/", headers={"Authorization": given})) is None


@pytest.mark.parametrize(
    "chosen",
    [
        ["rest_framework.authentication.SessionAuthentication"],
        ["rest_framework.authentication.TokenAuthentication"],
        ["rest_framework.authentication.BasicAuthentication"],
        [],
        None,
    ],
)
def test_a_client_is_let_in_whatever_the_site_chose_for_people(agent, settings, chosen):
    chosen_key = "DEFAULT_AUTHENTICATION_CLASSES"
    settings.REST_FRAMEWORK = {} if chosen is None else {chosen_key: chosen}
    assert (chosen_key in api_settings.user_settings) is (chosen is not None)

    assert agent.ask().status_code == 201
    wrong = APIClient().get(scenes.LIST, headers={"Authorization": "Bearer hac_x"})
    assert wrong.status_code == 401
    nobody = APIClient().get(scenes.LIST)
    names_a_scheme = chosen is None or (chosen and "Session" not in chosen[0])
    assert nobody.status_code == (401 if names_a_scheme else 403)


def test_a_token_counts_more_than_a_session(agent, people):
    row = ask(agent.client)
    agent.http.login(username="superuser", password="pw")

    answer = agent.post(scenes.url(row, "approve"))

    assert (answer.status_code, answer.json()["code"]) == (403, "client_not_allowed")
    assert scenes.events(row) == ["raised"]


def test_no_form_and_no_csrf_token_is_needed_or_taken(agent):
    answer = agent.http.post(
        scenes.LIST, {"tool_name": "x"}, headers={"Idempotency-Key": "k"}
    )

    assert (answer.status_code, answer.json()["code"]) == (
        415,
        "unsupported_media_type",
    )


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options"])
def test_a_method_that_nobody_takes_is_told_so(agent, method):
    answer = getattr(agent.http, method)(scenes.LIST)

    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


def test_a_renewed_token_goes_on_with_what_the_old_one_began(agent):
    url = agent.raised()
    _client, token = services.rotate_token(agent.client.pk, by=None)
    agent.http.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")

    again = agent.ask()

    assert (again.status_code, again["Location"]) == (200, url)

"""Who gets in: tokens, sessions with their CSRF token, and nobody else."""

from __future__ import annotations

import pytest
from rest_framework.authtoken.models import Token
from rest_framework.settings import api_settings
from rest_framework.test import APIClient

from hitl_approvals import services
from hitl_approvals.api.urls import router
from hitl_approvals.models import ReviewQueue
from tests.api import scenes


@pytest.fixture
def browser(people) -> APIClient:
    client = APIClient(enforce_csrf_checks=True)
    client.login(username="reviewer", password="pw")
    return client


def test_a_session_without_a_csrf_token_decides_nothing(browser):
    row = scenes.pending()

    response = browser.post(scenes.url(row, "approve"), {}, format="json")

    body = response.json()
    assert (response.status_code, body["code"]) == (403, "permission_denied")
    assert "CSRF" in body["detail"]
    assert body["interrupt"] is None
    assert scenes.events(row) == ["raised"]


def test_a_session_with_its_csrf_token_decides(browser):
    row = scenes.pending()
    token = "x" * 32
    browser.cookies["csrftoken"] = token

    response = browser.post(
        scenes.url(row, "approve"), {}, format="json", headers={"X-CSRFToken": token}
    )

    assert response.status_code == 200


@pytest.mark.parametrize("in_header", [False, True])
@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("application/x-www-form-urlencoded", "csrfmiddlewaretoken={token}"),
        (
            "multipart/form-data; boundary=b",
            "--b\r\nContent-Disposition: form-data; name=csrfmiddlewaretoken\r\n\r\n"
            "{token}\r\n--b--\r\n",
        ),
        ("text/plain", "csrfmiddlewaretoken={token}"),
    ],
)
def test_a_form_is_no_decision(browser, media_type, body, in_header):
    row = scenes.pending()
    browser.cookies["csrftoken"] = token = "x" * 32

    response = browser.post(
        scenes.url(row, "approve"),
        body.format(token=token),
        content_type=media_type,
        headers={"X-CSRFToken": token} if in_header else {},
    )

    assert response.status_code == (415 if in_header else 403)
    assert response.json()["interrupt"] is None
    assert scenes.events(row) == ["raised"]


def test_nothing_of_a_body_is_read_before_a_session_is_trusted(browser):
    row = scenes.pending()

    response = browser.post(
        scenes.url(row, "approve"), "{", content_type="application/json"
    )

    assert (response.status_code, response.json()["code"]) == (403, "permission_denied")


def test_a_session_reads_without_a_csrf_token(browser):
    assert browser.get(scenes.LIST).status_code == 200


def test_a_token_decides_without_a_csrf_token(people):
    row = scenes.pending()
    client = APIClient(enforce_csrf_checks=True)
    key = Token.objects.create(user=people["reviewer"]).key

    response = client.post(
        scenes.url(row, "approve"),
        {},
        format="json",
        headers={"Authorization": f"Token {key}"},
    )

    assert response.status_code == 200
    assert response.json()["decided_by"] == "reviewer"


@pytest.mark.parametrize("given", ["Token nonsense", "Token", "Token a b", "Basic x"])
def test_a_wrong_token_is_not_let_in(db, given):
    row = scenes.pending()

    response = APIClient().post(
        scenes.url(row, "approve"), {}, headers={"Authorization": given}
    )

    body = response.json()
    assert response.status_code == 401
    assert body["code"] in ("authentication_failed", "not_authenticated")
    assert body["interrupt"] is None
    assert response["WWW-Authenticate"] == "Token"


def test_a_person_who_left_is_not_let_in(people):
    key = Token.objects.create(user=people["reviewer"]).key
    people["reviewer"].is_active = False
    people["reviewer"].save()

    response = APIClient().get(scenes.LIST, headers={"Authorization": f"Token {key}"})

    assert response.status_code == 401


def test_without_a_choice_of_the_site_tokens_and_sessions_get_in(settings, people):
    settings.REST_FRAMEWORK = {}
    key = Token.objects.create(user=people["reviewer"]).key

    response = APIClient().get(scenes.LIST, headers={"Authorization": f"Token {key}"})

    assert response.status_code == 200


def test_without_the_token_app_sessions_get_in(settings, people):
    settings.REST_FRAMEWORK = {}
    settings.INSTALLED_APPS = [
        app for app in settings.INSTALLED_APPS if app != "rest_framework.authtoken"
    ]
    client = APIClient()
    client.login(username="reviewer", password="pw")

    inside = client.get(scenes.LIST)
    outside = APIClient().get(scenes.LIST, headers={"Authorization": "Token x"})

    assert (inside.status_code, outside.status_code) == (200, 403)
    assert outside.json()["code"] == "not_authenticated"


def test_the_site_chooses_who_gets_in(settings, people):
    settings.REST_FRAMEWORK = {
        "DEFAULT_AUTHENTICATION_CLASSES": [
            "rest_framework.authentication.BasicAuthentication"
        ]
    }
    client = APIClient()
    client.login(username="reviewer", password="pw")

    response = client.get(scenes.LIST)

    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Basic")
    assert api_settings.DEFAULT_AUTHENTICATION_CLASSES


@pytest.mark.parametrize("verb", ["", "approve/", "reject/", "edit/"])
def test_the_queue_of_others_is_not_there(reviewer, people, verb):
    queue = ReviewQueue.objects.create(slug="api-team")
    queue.users.add(people["superuser"])
    row = scenes.pending("api_flaky", {"order": "A-1"})
    assert row.queue_id == "api-team"
    bodies = {"reject/": {"reason": "no"}, "edit/": {"args": {"order": None}}}

    if verb:
        response = reviewer.post(
            scenes.url(row) + verb, bodies.get(verb, {}), format="json"
        )
    else:
        response = reviewer.get(scenes.url(row))

    assert response.status_code == 404
    assert response.json()["interrupt"] is None
    assert reviewer.get(scenes.LIST).json()["results"] == []
    assert scenes.events(row) == ["raised"]


def test_a_member_of_the_queue_decides_there(reviewer, people):
    queue = ReviewQueue.objects.create(slug="api-team")
    queue.users.add(people["reviewer"])
    row = scenes.pending("api_flaky", {"order": "A-1"})

    assert reviewer.post(scenes.url(row, "approve")).status_code == 200


@pytest.fixture
def jwt(settings, people):
    settings.REST_FRAMEWORK = {
        "DEFAULT_AUTHENTICATION_CLASSES": [
            "rest_framework_simplejwt.authentication.JWTAuthentication"
        ]
    }
    from rest_framework_simplejwt.tokens import AccessToken

    return AccessToken.for_user(people["reviewer"])


def bearer(token: object) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_site_lets_people_in_by_jwt_beside_our_agent_clients(jwt):
    row = scenes.pending()
    client = APIClient(enforce_csrf_checks=True)
    _made, token = services.create_client("agent-elsewhere", by=None)

    decided = client.post(scenes.url(row, "approve"), headers=bearer(jwt))
    listed = client.get(scenes.LIST, headers=bearer(token))
    forbidden = client.post(scenes.url(row, "approve"), headers=bearer(token))

    assert (decided.status_code, decided.json()["decided_by"]) == (200, "reviewer")
    assert (listed.status_code, listed.json()["results"]) == (200, [])
    assert forbidden.status_code == 403
    assert forbidden.json()["code"] == "client_not_allowed"


def test_a_jwt_that_is_none_or_over_is_told_in_our_shape(jwt):
    from datetime import timedelta

    jwt.set_exp(lifetime=-timedelta(minutes=1))

    for token in (jwt, "nonsense", "a.b.c", f"{jwt}x", "hac_unknown"):
        answer = APIClient().get(scenes.LIST, headers=bearer(token))
        body = answer.json()
        assert (answer.status_code, body["code"]) == (401, "authentication_failed")
        assert set(body) == {"code", "detail", "interrupt"}
        assert isinstance(body["detail"], str)
        assert body["detail"]
        assert "{" not in body["detail"]
        assert answer["WWW-Authenticate"].startswith("Bearer ")


def test_a_session_needs_its_csrf_token_for_every_post(browser):
    row = scenes.pending()
    written = [
        (prefix, basename, action)
        for prefix, viewset, basename in router.registry
        for route in router.get_routes(viewset)
        for method, action in router.get_method_map(viewset, route.mapping).items()
        if method == "post"
    ]
    assert len(written) > 15

    for prefix, _basename, action in written:
        name = action.replace("_", "-")
        for address in (f"/api/{prefix}/", f"/api/{prefix}/{row.pk}/{name}/"):
            answer = browser.post(address, {}, format="json")
            # A client's own commands and unknown addresses are none for a browser.
            assert answer.status_code in (403, 404, 405), (address, answer.status_code)
    assert scenes.events(row) == ["raised"]

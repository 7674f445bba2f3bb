"""Who gets in: tokens, sessions with their CSRF token, and nobody else."""

from __future__ import annotations

import pytest
from rest_framework.authtoken.models import Token
from rest_framework.settings import api_settings
from rest_framework.test import APIClient

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

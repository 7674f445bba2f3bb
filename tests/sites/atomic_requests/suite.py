"""With ATOMIC_REQUESTS a decision is recorded and announced when it is committed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from hitl_approvals import checks, dispatchers
from hitl_approvals.models import AgentTurn, PendingInterrupt
from hitl_approvals.testing import run_owed
from tests.admin.scenes import send
from tests.support.agents import call
from tests.support.turns import begin, only
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def hints(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was announced: the turn's status then, or that nothing was committed yet."""
    told: list[str] = []

    def wake(turn_id: UUID) -> bool:
        told.append(
            "too early"
            if connection.in_atomic_block
            else AgentTurn.objects.get(pk=turn_id).status
        )
        return True

    monkeypatch.setattr(dispatchers, "wake", wake)
    return told


@pytest.fixture
def person() -> User:
    made = User.objects.create_user("rita", is_staff=True)
    made.user_permissions.set(
        Permission.objects.filter(content_type__app_label="hitl_approvals")
    )
    return made


def waiting() -> PendingInterrupt:
    return only(begin([call("mail", to="a@example.org")]))


def test_no_check_warns() -> None:
    assert [m for m in checks.run(["default"]) if m.id == "hitl_approvals.W003"] == []


def test_approval_over_rest_is_announced_after_its_commit_and_runs_once(
    person: User, hints: list[str], world: World
) -> None:
    row = waiting()
    client = APIClient()
    client.force_authenticate(person)

    response = client.post(f"/api/interrupts/{row.pk}/approve/", {}, format="json")

    assert response.status_code == 200, response.content
    assert response.json()["status"] == "decided"
    assert hints == ["ready"]
    assert run_owed() == ["completed"]
    assert world.names() == ["mail"]


def test_approval_in_the_admin_is_announced_after_its_commit_and_runs_once(
    person: User, hints: list[str], world: World
) -> None:
    row = waiting()
    client = Client()
    client.force_login(person)

    response = send(client, row, "approve")

    assert response.status_code == 302
    assert hints == ["ready"]
    assert run_owed() == ["completed"]
    assert world.names() == ["mail"]


def test_turn_started_over_rest_is_announced_after_its_commit(
    person: User, hints: list[str]
) -> None:
    client = APIClient()
    client.force_authenticate(person)
    body = {"agent": "scripted", "input": []}

    response = client.post("/api/turns/", body, format="json")

    assert response.status_code == 202, response.content
    assert hints == ["ready"]


def test_decision_in_a_view_of_the_site_counts_with_the_request(
    client: Client, hints: list[str], world: World
) -> None:
    row = waiting()

    assert client.get(f"/decide/{row.pk}/").status_code == 200

    assert hints == ["ready"]
    assert run_owed() == ["completed"]
    assert world.names() == ["mail"]


def test_decision_in_a_request_that_fails_never_was(
    client: Client, hints: list[str], world: World
) -> None:
    row = waiting()
    client.raise_request_exception = False

    assert client.get(f"/decide/{row.pk}/?fail").status_code == 500

    row.refresh_from_db()
    assert (row.status, row.events_count) == ("pending", 1)
    assert hints == []
    assert run_owed() == []
    assert world.names() == []


def test_second_approval_over_rest_is_told_who_was_first(person: User) -> None:
    row = waiting()
    client = APIClient()
    client.force_authenticate(person)
    path = f"/api/interrupts/{row.pk}/approve/"

    statuses = [client.post(path, {}, format="json").status_code for _ in range(2)]

    assert statuses == [200, 409]


def test_pages_open(person: User) -> None:
    row = waiting()
    client: Any = Client()
    client.force_login(person)

    for page in ("", f"{row.pk}/change/"):
        response = client.get(f"/admin/hitl_approvals/pendinginterrupt/{page}")
        assert response.status_code == 200

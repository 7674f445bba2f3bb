"""The people of the API's tests, and a client for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from tests.api import agents_for_api, scenes
from tests.api.conformance import every_answer_is_documented  # noqa: F401  a fixture
from tests.api.remote_scenes import Agent


@pytest.fixture(autouse=True)
def nothing_ran() -> Iterator[None]:
    agents_for_api.RAN.clear()
    yield
    agents_for_api.RAN.clear()


@pytest.fixture
def people(db: None) -> dict[str, User]:
    return {
        "superuser": User.objects.create_superuser("superuser", password="pw"),
        "reviewer": scenes.user("reviewer", "decide_pendinginterrupt"),
        "viewer": scenes.user("viewer", "view_pendinginterrupt"),
        "stranger": scenes.user("stranger"),
        "requester": scenes.user(
            "requester",
            "view_pendinginterrupt",
            "decide_pendinginterrupt",
            "add_agentturn",
        ),
    }


@pytest.fixture
def client_of(people: dict[str, User]) -> Callable[[str], APIClient]:
    def client(role: str) -> APIClient:
        made = APIClient()
        if role != "anonymous":
            made.force_authenticate(people[role])
        return made

    return client


@pytest.fixture
def reviewer(client_of: Callable[[str], APIClient]) -> APIClient:
    return client_of("reviewer")


@pytest.fixture
def requester(client_of: Callable[[str], APIClient]) -> APIClient:
    return client_of("requester")


@pytest.fixture
def agent(db: None) -> Agent:
    return Agent()

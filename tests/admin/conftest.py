"""People with different rights, and clients that are logged in as them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tests.admin import agents_for_admin


@pytest.fixture(autouse=True)
def _forget_what_ran() -> None:
    agents_for_admin.RAN.clear()


@pytest.fixture
def person(transactional_db: None) -> Callable[..., User]:
    """Make a member of staff with some of our rights, by codename."""

    def make(name: str, *rights: str, **fields: Any) -> User:
        user = User.objects.create_user(name, is_staff=True, **fields)
        for right in rights:
            user.user_permissions.add(Permission.objects.get(codename=right))
        return user

    return make


@pytest.fixture
def reviewer(person: Callable[..., User]) -> User:
    return person("tom.weber", "decide_pendinginterrupt", "view_pendinginterrupt")


@pytest.fixture
def other_reviewer(person: Callable[..., User]) -> User:
    return person("priya.nair", "decide_pendinginterrupt", "view_pendinginterrupt")


@pytest.fixture
def viewer(person: Callable[..., User]) -> User:
    return person("viewer", "view_pendinginterrupt")


@pytest.fixture
def stranger(person: Callable[..., User]) -> User:
    return person("stranger")


@pytest.fixture
def settler(person: Callable[..., User]) -> User:
    return person("farah", "settle_pendinginterrupt", "view_pendinginterrupt")


@pytest.fixture
def boss(transactional_db: None) -> User:
    return User.objects.create_superuser("boss")


@pytest.fixture
def login() -> Callable[[User], Client]:
    """Return a client that is logged in."""

    def make(user: User, **options: Any) -> Client:
        client = Client(**options)
        client.force_login(user)
        return client

    return make


@pytest.fixture
def desk(reviewer: User, login: Callable[[User], Client]) -> Client:
    """The reviewer's browser."""
    return login(reviewer)

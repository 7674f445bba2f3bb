"""Fixtures that the test packages of the core share; their conftests import them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from hitl_approvals.registry import AgentDefinition, registry
from hitl_approvals.services import effects
from tests.support import agents  # registers the tools and the agent
from tests.support.world import world as the_world


@pytest.fixture(autouse=True)
def world() -> Iterator[Any]:
    """The one world, empty again before every test."""
    the_world.reset()
    yield the_world
    the_world.reset()


@pytest.fixture
def make_agent() -> Iterator[Callable[..., str]]:
    """Register a function as an agent for one test; return its name."""
    made: list[str] = []

    def register(function: Any, *tools: Any, **options: Any) -> str:
        name = f"{function.__qualname__}"[-100:]
        registry.add_agent(
            AgentDefinition(
                name=name,
                target=function,
                tools={one.name: one for one in tools or agents.TOOLS},
                **options,
            )
        )
        made.append(name)
        return name

    yield register
    for name in made:
        registry.agents.pop(name, None)


@pytest.fixture
def make_user(db: None) -> Callable[..., User]:
    """Make a user with the named rights of this app."""

    def make(name: str, *rights: str) -> User:
        user = User.objects.create_user(name)
        for right in rights:
            user.user_permissions.add(
                Permission.objects.get(
                    codename=right, content_type__app_label="hitl_approvals"
                )
            )
        return User.objects.get(pk=user.pk)

    return make


@pytest.fixture
def reviewer(make_user: Callable[..., User]) -> User:
    """Somebody who may decide."""
    return make_user("rita", "decide_pendinginterrupt")


@pytest.fixture
def sleepy(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """A process that is paused for an hour between the gate and the call."""

    @contextmanager
    def asleep() -> Iterator[None]:
        start, monotonic, slept = effects.start, time.monotonic, [0.0]

        def pause(*args: Any, **kwargs: Any) -> None:
            start(*args, **kwargs)
            slept[0] += 3600

        with monkeypatch.context() as patch:
            patch.setattr(effects, "start", pause)
            patch.setattr(time, "monotonic", lambda: monotonic() + slept[0])
            yield

    return asleep

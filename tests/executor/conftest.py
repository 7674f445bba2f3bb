"""The shared fixtures of the core's tests, and a registry that each test leaves as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hitl_approvals import DurableExecutor
from hitl_approvals.registry import registry
from tests.support import agents
from tests.support.fixtures import (  # noqa: F401  pytest finds them by name
    make_user,
    reviewer,
    world,
)


@pytest.fixture(autouse=True)
def _no_graph_stays() -> Iterator[None]:
    before = dict(registry.agents)
    yield
    registry.agents.clear()
    registry.agents.update(before)


@pytest.fixture
def graph() -> Callable[..., DurableExecutor]:
    """Make a graph on the rows, with every tool of the tests."""

    def make(*nodes: tuple[str, Any], name: str = "g", **options: Any) -> Any:
        registry.agents.pop(name, None)
        return DurableExecutor(nodes, name=name, tools=agents.TOOLS, **options)

    return make

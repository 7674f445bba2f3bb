"""What the tests of other frameworks and engines share. Imports none of them.

The modules here are collected in every environment, so they import frameworks inside of
functions only. For the contract see `hitl_approvals.testing.AgentContract`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hitl_approvals.registry import registry
from tests.support.fixtures import (  # noqa: F401  pytest finds them by name
    make_user,
    reviewer,
    world,
)


@pytest.fixture(autouse=True)
def _no_agent_stays() -> Iterator[None]:
    before = dict(registry.agents)
    yield
    registry.agents.clear()
    registry.agents.update(before)

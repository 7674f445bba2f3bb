from __future__ import annotations

import sys

import pytest

from hitl_approvals.registry import AgentDefinition, registry
from tests.frameworks import toy
from tests.support import agents
from tests.support.fixtures import world  # noqa: F401  pytest finds it by name


@pytest.fixture(autouse=True)
def toy_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register an agent of the toy framework, with the tools of the tests."""
    monkeypatch.setitem(sys.modules, "hitl_approvals.agents.toy", toy)
    tools = [agents.pay, agents.mail, agents.note, agents.book, agents.transfer]
    definition = AgentDefinition(
        name="toy", target=None, kind="toy", tools={one.name: one for one in tools}
    )
    monkeypatch.setitem(registry.agents, "toy", definition)
    toy.asked.clear()

"""What agents of the OpenAI Agents SDK are without the SDK."""

from __future__ import annotations

import sys

import pytest

from hitl_approvals.agents.base import load
from hitl_approvals.agents.capabilities import capabilities_of
from hitl_approvals.exceptions import MissingExtra
from hitl_approvals.registry import AgentDefinition

DEFINITION = AgentDefinition(name="sdk", target=None, kind="openai_agents")


def test_without_the_sdk_the_pip_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agents", None)
    monkeypatch.delitem(sys.modules, "agents.run_state", raising=False)

    with pytest.raises(MissingExtra, match=r"django-hitl-approvals\[openai-agents\]"):
        load(DEFINITION)


def test_what_it_can_do_is_known_without_the_sdk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "agents", None)

    declared = capabilities_of("openai_agents")

    assert (declared.native_edit, declared.reject_text) == (False, True)
    assert (declared.replays_replies, declared.state_format) == (True, "json")

"""Pydantic AI is not installed: the text says what to install, and nothing breaks before."""

from __future__ import annotations

import sys

import pytest

from hitl_approvals.agents import base
from hitl_approvals.agents.capabilities import capabilities_of
from hitl_approvals.exceptions import MissingExtra
from hitl_approvals.registry import AgentDefinition


def test_the_error_names_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    definition = AgentDefinition(name="refunds", target=None, kind="pydantic_ai")

    with pytest.raises(MissingExtra, match=r'"django-hitl-approvals\[pydantic-ai\]"'):
        base.load(definition)


def test_what_it_can_do_is_known_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)

    assert capabilities_of("pydantic_ai").native_edit is True

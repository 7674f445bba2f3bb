"""What the adapters share keeps the agent contract, by a kind from outside of the package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hitl_approvals import agent, services
from hitl_approvals.agents.snapshots import installed
from hitl_approvals.testing import AgentContract
from hitl_approvals.testing import agent_contract_rows as waits

pytestmark = pytest.mark.concurrency

VERSION = installed("django")


def ask(script: Any, messages: Sequence[Any]) -> dict[str, Any]:
    """Let a script reply to a conversation."""
    number = sum(one["role"] == "assistant" for one in messages)
    told = [
        (one["tool_call_id"], one["content"])
        for one in messages
        if one["role"] == "tool"
    ]
    return script.play(number, told)


class TestScriptedFramework(AgentContract):
    kind = "tests.frameworks.scripted"

    def make_agent(self, name: str, tools: Any, script: Any) -> None:
        def model(messages: list[Any]) -> dict[str, Any]:
            return ask(script, messages)

        agent(name, kind=self.kind, tools=tools)(model)

    def make_asking_agent(self, name: str, payload: Any, response_schema: Any) -> None:
        def model(messages: list[Any]) -> dict[str, Any]:
            return {"question": payload, "schema": response_schema}

        agent(name, kind=self.kind)(model)

    def make_stubborn_agent(self, name: str, tools: Any, script: Any) -> bool:
        def model(messages: list[Any]) -> dict[str, Any]:
            return {**ask(script, messages), "stubborn": True}

        agent(name, kind=self.kind, tools=tools)(model)
        return True

    def test_what_is_asked_about_again_is_shown_as_before(self) -> None:
        turn = self.approved()
        before = self.only(turn)
        waits.rewrite_state(turn, framework_version="999.0")
        self.go_on(turn)
        services.re_review(before.pk, by=None, via="test")
        waits.rewrite_state(turn, **{**turn.state, "framework_version": VERSION})
        services.retry(turn.pk, by=None, via="test")
        self.go_on(turn)

        (again,) = self.waiting(turn)

        assert [one["role"] for one in before.context["messages"]] == [
            "user",
            "assistant",
        ]
        assert again.context == {**before.context, "repeat_of": str(before.pk)}

"""The graph agent keeps the contract that every kind of agent does."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_approvals import DurableExecutor, GraphContext
from hitl_approvals.testing import AgentContract
from tests.engine.test_agent_contract import play

pytestmark = pytest.mark.concurrency


class TestGraphAgent(AgentContract):
    kind = "graph"

    def make_agent(self, name: str, tools: Any, script: Any) -> None:
        def scripted(given: Any, ctx: GraphContext) -> str:
            return play(ctx, script)

        DurableExecutor([("play", scripted)], name=name, tools=tools)

    def make_asking_agent(self, name: str, payload: Any, response_schema: Any) -> None:
        def asking(given: Any, ctx: GraphContext) -> Any:
            return ctx.interrupt(payload, response_schema=response_schema)

        DurableExecutor([("ask", asking)], name=name)

    def make_stubborn_agent(self, name: str, tools: Any, script: Any) -> bool:
        def stubborn(given: Any, ctx: GraphContext) -> str:
            try:
                return play(ctx, script)
            except Exception:  # noqa: BLE001  that is what is tested
                return "did it anyway"

        DurableExecutor([("play", stubborn)], name=name, tools=tools)
        return True

"""Temporal against the contract of every kind of agent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from hitl_approvals import agent
from hitl_approvals.engines import TemporalWorkflow
from hitl_approvals.registry import Tool
from hitl_approvals.testing.agent_contract_world import Script
from tests.engines.forwarding_contract import ForwarderContract

pytestmark = pytest.mark.engines

ADDRESS = "HITL_TEST_TEMPORAL"
"""Environment: where the server of this module listens, for the other processes."""


@pytest.fixture(scope="module", autouse=True)
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    from tests.engines.temporal_support import TemporalHarness

    harness = TemporalHarness(tmp_path_factory.mktemp("temporal"))
    os.environ[ADDRESS] = harness.server.address
    yield
    del os.environ[ADDRESS]
    harness.close()


class TestTemporalContract(ForwarderContract):
    """Its model is an activity, its loop a workflow."""

    kind = "temporal"
    preload = ("temporalio.client",)

    def make_agent(
        self, name: str, tools: Sequence[Tool[Any, Any]], script: Script
    ) -> None:
        self.register(name, tools, script=list(script))

    def make_asking_agent(
        self, name: str, payload: Any, response_schema: dict[str, Any]
    ) -> None:
        self.register(
            name, [], question={"payload": payload, "schema": response_schema}
        )

    def register(self, name: str, tools: Sequence[Tool[Any, Any]], **memo: Any) -> None:
        @agent(name, kind=self.kind, tools=tools)
        def workflow() -> TemporalWorkflow:
            return TemporalWorkflow(
                client=os.environ[ADDRESS],
                workflow="Contract",
                task_queue="hitl-tests",
                options={"memo": memo},
            )

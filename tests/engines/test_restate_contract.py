"""Restate against the contract of every kind of agent."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from hitl_approvals import agent
from hitl_approvals.engines import RestateWorkflow
from hitl_approvals.registry import Tool
from hitl_approvals.testing.agent_contract_world import VARIABLE, Script
from tests.engines.forwarding_contract import ForwarderContract

pytestmark = pytest.mark.engines

INGRESS, ADMIN = "HITL_TEST_RESTATE", "HITL_TEST_RESTATE_ADMIN"
"""Environment: where the server of this module listens, for the other processes."""


@pytest.fixture(scope="module", autouse=True)
def restate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    from tests.engines.restate_support import RestateHarness

    harness = RestateHarness(tmp_path_factory.mktemp("restate"))
    os.environ[INGRESS] = f"http://{harness.server.ingress}"
    os.environ[ADMIN] = f"http://{harness.server.admin}"
    yield
    del os.environ[INGRESS], os.environ[ADMIN]
    harness.close()


class TestRestateContract(ForwarderContract):
    """Its model is a recorded step, its loop a workflow."""

    kind = "restate"

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

    def register(
        self, name: str, tools: Sequence[Tool[Any, Any]], **given: Any
    ) -> None:
        # The service is another process, started before this test had its file.
        headers = {"x-given": json.dumps({**given, "file": os.environ[VARIABLE]})}

        @agent(name, kind=self.kind, tools=tools)
        def workflow() -> RestateWorkflow:
            return RestateWorkflow(
                ingress=os.environ[INGRESS],
                admin=os.environ[ADMIN],
                workflow="Contract",
                headers=headers,
            )

"""DBOS against the contract of every kind of agent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from hitl_approvals import agent
from hitl_approvals.engines import DBOSWorkflow
from hitl_approvals.registry import Tool
from hitl_approvals.testing.agent_contract_world import VARIABLE, Script
from tests.engines.forwarding_contract import ForwarderContract

pytestmark = pytest.mark.engines

DATABASE = "HITL_TEST_DBOS"
"""Environment: the system database of this module, for the other processes."""


@pytest.fixture(scope="module", autouse=True)
def dbos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    from tests.engines.dbos_support import Database, DBOSHarness

    with Database("contract") as database:
        harness = DBOSHarness(tmp_path_factory.mktemp("dbos"), database)
        os.environ[DATABASE] = harness.url
        yield
        del os.environ[DATABASE]
        harness.close()


class TestDBOSContract(ForwarderContract):
    """Its model is a step, its loop a workflow."""

    kind = "dbos"
    preload = ("dbos",)

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
        # The application is another process, started before this test had its file.
        attributes = {**given, "file": os.environ[VARIABLE]}

        @agent(name, kind=self.kind, tools=tools)
        def workflow() -> DBOSWorkflow:
            return DBOSWorkflow(
                database=os.environ[DATABASE],
                workflow="contract",
                queue="hitl-tests",
                options={"attributes": attributes},
            )

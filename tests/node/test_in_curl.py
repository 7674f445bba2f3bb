"""The agent in curl, by itself: the one of the two that runs on nearly every machine.

The plain run has this much of it; everything else of this folder is `make test-node`.
"""

from __future__ import annotations

import pytest
from pytest_django.live_server_helper import LiveServer

from example_project.remote_agents.payments import Ledger
from tests.node.agents import Job, curl_is_here
from tests.node.gate import Gate
from tests.node.table import ONCE
from tests.node.test_kills import end_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def site(live_server: LiveServer) -> LiveServer:
    """A site in a thread, which is there at once; nobody kills it here."""
    return live_server


@pytest.fixture
def kind() -> str:
    if not curl_is_here():
        pytest.skip("curl is missing")
    return "curl"


def test_agent_in_curl_is_killed_twice_and_refunds_once(
    job: Job, gate: Gate, ledger: Ledger
) -> None:
    job.run_to(gate, "consume", "after")
    job.run_to(gate, "act", "after")

    assert job.run_until_over() == [0], job.told
    assert end_of(ledger) == ONCE

"""The site is killed while an agent talks to it; the agent is started again, and goes on."""

from __future__ import annotations

import pytest

from example_project.remote_agents.payments import Ledger
from hitl_approvals.models import PendingInterrupt
from tests.node.agents import Job
from tests.node.gate import MOMENTS, Gate, Moment, Step
from tests.node.site import COMMANDS, Site
from tests.support.remote import kinds

pytestmark = [pytest.mark.node, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", ["raise", "consume", "report"])
def test_site_is_killed(
    job: Job, gate: Gate, site: Site, ledger: Ledger, step: Step, moment: Moment
) -> None:
    with gate.holding(step, moment) as stop:
        agent = job.start()
        stop.wait()
        site.kill()
    assert job.end(agent) == 1, job.told
    assert job.run() == 1, "nobody is there"
    site.start()

    assert job.run_until_over() == [0], job.told
    row = PendingInterrupt.objects.get()
    assert (row.status, row.outcome_status) == ("resolved", "succeeded")
    assert kinds(row) == ["raised", "approved", "consumed", "resolved"]
    assert len(ledger.refunds()) == 1


@pytest.mark.parametrize("server", COMMANDS)
def test_site_is_killed_while_the_agent_waits(
    job: Job, gate: Gate, site: Site, ledger: Ledger
) -> None:
    decides, gate.on_wait = gate.on_wait, site.kill

    assert job.run() == 1, job.told
    site.start()
    gate.on_wait = decides

    assert job.run_until_over() == [0], job.told
    assert len(ledger.refunds()) == 1

"""Other things that go wrong: lost disks, late reports, two processes, sick payments."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest

from example_project.demo.stage import HOST, free_port
from example_project.remote_agents.payments import Ledger
from hitl_approvals import services
from hitl_approvals.models import AgentClient, PendingInterrupt
from hitl_approvals.services import clients
from tests.node.agents import Job, kill
from tests.node.gate import Gate
from tests.support.remote import kinds, pass_time

pytestmark = [pytest.mark.node, pytest.mark.django_db(transaction=True)]

ROUNDS = 8
LONGEST = 0.6
"""Seconds that an agent of these tests takes, more or less."""


def the_row() -> PendingInterrupt:
    return PendingInterrupt.objects.get()


def miss_the_report() -> None:
    pass_time(the_row(), "outcome_due")
    services.sweep()
    assert the_row().status == "in_doubt"


def test_who_has_lost_its_folder_gets_nothing(
    job: Job, gate: Gate, ledger: Ledger
) -> None:
    job.run_to(gate, "consume", "after")
    shutil.rmtree(job.state)

    assert job.run_until_over() == [2]
    assert "already_consumed" in job.told[0]
    assert ledger.refunds() == []
    miss_the_report()


def test_a_job_is_one_request(job: Job, gate: Gate, ledger: Ledger) -> None:
    job.run_to(gate, "wait")
    job.words = ("1152921504606846977", "500.00")

    assert job.run() == 2
    assert "key_reused" in job.told[0]
    assert ledger.refunds() == []


def test_what_was_done_is_reported_however_late(
    job: Job, gate: Gate, ledger: Ledger
) -> None:
    job.run_to(gate, "report")
    miss_the_report()

    assert job.run() == 0
    assert kinds(the_row())[-2:] == ["in_doubt", "late_result"]
    assert len(ledger.refunds()) == 1


@pytest.mark.parametrize("honours_keys", [True, False])
def test_nothing_is_begun_for_a_request_in_doubt(
    job: Job, gate: Gate, ledger: Ledger, honours_keys: bool
) -> None:
    job.run_to(gate, "act")
    miss_the_report()

    assert job.run() == 0
    assert "in_doubt" in job.told[0]
    assert ledger.refunds() == []


def test_a_revoked_token_is_for_somebody_to_look_at(
    job: Job, gate: Gate, billing: tuple[AgentClient, str]
) -> None:
    job.run_to(gate, "consume")
    clients.revoke_client(billing[0].pk, by=None)

    assert job.run_until_over() == [2]
    assert gate.count("act") == 0


def test_a_refused_payment_has_failed(job: Job, ledger: Ledger) -> None:
    job.words = ("7", "0")

    assert job.run() == 0
    assert (the_row().status, the_row().outcome_status) == ("resolved", "failed")
    assert "nothing to refund" in str(the_row().outcome)
    assert ledger.refunds() == []


def test_a_payment_system_that_is_away_is_asked_again_under_the_same_key(
    job: Job, gate: Gate, ledger: Ledger
) -> None:
    place = gate.upstream["refunds"]
    gate.upstream["refunds"] = f"http://{HOST}:{free_port()}"
    assert [job.run(), job.run()] == [1, 1]
    assert the_row().status == "decided"

    gate.upstream["refunds"] = place
    assert job.run() == 0
    assert kinds(the_row()) == ["raised", "approved", "consumed", "resolved"]
    assert len(ledger.refunds()) == 1


@pytest.mark.parametrize("honours_keys", [False])
def test_a_payment_system_that_is_away_leaves_a_doubt_where_no_key_is_honoured(
    job: Job, gate: Gate
) -> None:
    gate.upstream["refunds"] = f"http://{HOST}:{free_port()}"

    assert job.run_until_over() == [0]
    assert the_row().status == "in_doubt"
    assert gate.count("act") == 1


@pytest.mark.parametrize("honours_keys", [True, False])
def test_of_two_processes_one_pays(
    job: Job, gate: Gate, ledger: Ledger, honours_keys: bool
) -> None:
    with gate.holding("act", "before") as stop:
        slow = job.start()
        stop.wait()
        assert job.run() == 0
        # What the slow one has sent arrives when the other one is through.
        stop.release(dropped=False)
        assert job.end(slow) == 1

    assert job.run() == 0
    assert the_row().status == ("resolved" if honours_keys else "in_doubt")
    assert len(ledger.refunds()) == 1


@pytest.mark.parametrize("honours_keys", [True, False])
def test_killed_at_any_moment(
    job: Job, ledger: Ledger, honours_keys: bool, gate: Gate
) -> None:
    for number in range(ROUNDS):
        job.name = f"refund-{number}"
        _killed_until_over(job)

    found = [row.status for row in PendingInterrupt.objects.all()]
    paid = [refund["key"] for refund in ledger.refunds()]
    assert len(found) == ROUNDS
    assert len(set(paid)) == len(paid)
    if honours_keys:
        assert set(found) == {"resolved"}
        assert len(paid) == ROUNDS
    else:
        assert set(found) <= {"resolved", "in_doubt"}
        resolved = PendingInterrupt.objects.filter(status="resolved")
        assert {str(row.pk) for row in resolved} <= set(paid)


def _killed_until_over(job: Job) -> None:
    for _start in range(5):
        agent = job.start()
        try:
            agent.wait(random.uniform(0, LONGEST))
        except subprocess.TimeoutExpired:
            kill(agent)
        else:
            job.end(agent)
    assert job.run_until_over() == [0], job.told

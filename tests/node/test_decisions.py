"""What an agent does with every end that a request can have, and with exact numbers."""

from __future__ import annotations

import threading

import pytest

from example_project.remote_agents.payments import Ledger
from hitl_approvals import Edit, Reject, canonical, services
from hitl_approvals.models import PendingInterrupt
from tests.node.agents import Job
from tests.node.conftest import approve, decide
from tests.node.gate import Gate
from tests.node.site import COMMANDS
from tests.support.remote import kinds, pass_time

pytestmark = [pytest.mark.node, pytest.mark.django_db(transaction=True)]

BEYOND_DOUBLE = 2**60 + 1
"""An integer that JavaScript rounds, as `jq` did for long."""


@pytest.mark.parametrize("server", COMMANDS)
def test_an_answer_comes_while_the_agent_waits(job: Job, gate: Gate) -> None:
    waits = threading.Event()
    gate.on_wait = waits.set

    agent = job.start()
    assert waits.wait(30)
    approve()

    assert job.end(agent) == 0, job.told
    # It was not asked in vain: the one request was held until there was an answer.
    assert gate.count("wait") == 1


def test_what_was_approved_is_paid_to_the_last_digit(job: Job, ledger: Ledger) -> None:
    assert job.run() == 0, job.told

    (refund,) = ledger.refunds()
    assert refund["args"] == {"order_id": 1152921504606846977, "amount": "49.90"}
    row = PendingInterrupt.objects.get()
    assert canonical.dumps(refund["args"]) == row.args_text


def test_what_was_edited_is_paid_to_the_last_digit(
    job: Job, gate: Gate, ledger: Ledger
) -> None:
    edited = {
        "order_id": BEYOND_DOUBLE,
        "amount": "10.00",
        "lines": [{"id": -BEYOND_DOUBLE, "share": 0.1}, {"id": 10**30, "share": 1e22}],
        "zero": [0, -0.0, 1.0, 5e-324],
        "note": '“ü” \ud800 \u0000 \U0001f600 "\\',
        "__proto__": {"10": 1, "2": 2},
    }
    gate.on_wait = lambda: decide(Edit(edited))

    assert job.run() == 0, job.told
    row = PendingInterrupt.objects.get()
    assert row.decision_args_text == canonical.dumps(edited)
    (refund,) = ledger.refunds()
    assert canonical.dumps(refund["args"]) == row.decision_args_text
    assert kinds(row) == ["raised", "edited", "consumed", "resolved"]


def test_a_refusal_is_final(job: Job, gate: Gate, ledger: Ledger) -> None:
    gate.on_wait = lambda: decide(Reject("Ask for a photo.\x1b[2J"))

    assert job.run() == 0
    assert job.run() == 0
    assert "reject" in job.told[0]
    assert "Ask for a photo." in job.told[0]
    assert "\x1b" not in job.told[0]
    assert job.told[1] == job.told[0]
    row = PendingInterrupt.objects.get()
    assert (row.status, row.outcome_status) == ("resolved", "refused")
    assert kinds(row) == ["raised", "rejected", "resolved"]
    assert (gate.count("raise"), gate.count("act")) == (1, 0)
    assert ledger.refunds() == []


def test_nobody_decided_in_time(job: Job, gate: Gate) -> None:
    job.run_to(gate, "wait")
    pass_time(PendingInterrupt.objects.get(), "expires_at")
    services.sweep()

    assert job.run() == 0
    assert "expire" in job.told[0]
    row = PendingInterrupt.objects.get()
    assert (row.status, row.outcome_status) == ("resolved", "expired")
    assert gate.count("act") == 0


def test_withdrawn_while_the_agent_was_away(job: Job, gate: Gate) -> None:
    job.run_to(gate, "wait")
    row = PendingInterrupt.objects.get()
    services.withdraw(row.pk, client=row.client)

    assert job.run() == 0
    assert "Nothing may run any more" in job.told[0]
    assert gate.count("act") == 0


@pytest.mark.parametrize("swept", [False, True])
def test_not_fetched_in_time(job: Job, gate: Gate, swept: bool) -> None:
    job.run_to(gate, "consume")
    pass_time(PendingInterrupt.objects.get(), "execute_by")
    if swept:
        services.sweep()

    assert job.run() == 0
    assert "Nothing may run any more" in job.told[0]
    services.sweep()
    row = PendingInterrupt.objects.get()
    assert (row.status, row.outcome_status) == ("cancelled", "lapsed")
    assert gate.count("act") == 0

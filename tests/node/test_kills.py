"""An agent that is killed at any step, and started again, refunds at most once.

The table of `docs/how-to/agent-in-any-language.md` says what each of these comes to.
"""

from __future__ import annotations

import pytest

from example_project.remote_agents.payments import Ledger
from hitl_approvals.models import PendingInterrupt
from tests.node.agents import Job
from tests.node.gate import MOMENTS, STEPS, Gate, Moment, Step
from tests.support.remote import kinds

pytestmark = [pytest.mark.node, pytest.mark.django_db(transaction=True)]

STRAIGHT = ["raised", "approved", "consumed", "resolved"]
IN_DOUBT = ["raised", "approved", "consumed", "in_doubt"]


def the_row() -> PendingInterrupt:
    """Return the only request that there is."""
    return PendingInterrupt.objects.get()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", STEPS)
def test_killed_once(
    job: Job, gate: Gate, ledger: Ledger, step: Step, moment: Moment
) -> None:
    job.run_to(gate, step, moment)

    assert job.run_until_over() == [0], job.told
    row = the_row()
    assert (row.status, row.outcome_status) == ("resolved", "succeeded")
    assert kinds(row) == STRAIGHT
    (refund,) = ledger.refunds()
    assert refund["key"] == str(row.pk)


@pytest.mark.parametrize("honours_keys", [False])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", STEPS)
def test_killed_once_where_no_key_is_honoured(
    job: Job, gate: Gate, ledger: Ledger, step: Step, moment: Moment
) -> None:
    job.run_to(gate, step, moment)

    assert job.run_until_over() == [0], job.told
    row = the_row()
    if step == "act":
        assert (row.status, row.outcome_status) == ("in_doubt", "")
        assert kinds(row) == IN_DOUBT
        # The agent cannot tell these two apart, and a person can.
        assert len(ledger.refunds()) == (moment == "after")
    else:
        assert row.status == "resolved"
        assert kinds(row) == STRAIGHT
        assert len(ledger.refunds()) == 1
    assert gate.count("act") == 1


@pytest.mark.parametrize("honours_keys", [True, False])
def test_killed_at_every_step_of_one_job(
    job: Job, gate: Gate, ledger: Ledger, honours_keys: bool
) -> None:
    places = [(step, moment) for step in STEPS for moment in MOMENTS]
    for step, moment in places:
        if step == "wait" and moment == "after":
            continue  # whoever comes again finds it decided, and does not wait
        if step == "act" and not honours_keys:
            continue
        job.run_to(gate, step, moment)
        if (step, moment) == ("wait", "before"):
            gate.on_wait()

    assert job.run_until_over() == [0], job.told
    assert kinds(the_row()) == STRAIGHT
    assert len(ledger.refunds()) == 1

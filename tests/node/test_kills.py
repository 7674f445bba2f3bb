"""An agent that is killed at any step, and started again, refunds at most once."""

from __future__ import annotations

import pytest

from example_project.remote_agents.payments import Ledger
from hitl_approvals.models import PendingInterrupt
from tests.node.agents import Job
from tests.node.gate import MOMENTS, STEPS, Gate
from tests.node.table import LINES, End, Line
from tests.support.remote import kinds

pytestmark = [pytest.mark.node, pytest.mark.django_db(transaction=True)]

EVENTS = {
    "resolved": ["raised", "approved", "consumed", "resolved"],
    "in_doubt": ["raised", "approved", "consumed", "in_doubt"],
}


def end_of(ledger: Ledger) -> End:
    """Return what came of the only request that there is."""
    row = PendingInterrupt.objects.get()
    assert kinds(row) == EVENTS[row.status]
    refunds = ledger.refunds()
    assert {refund["key"] for refund in refunds} <= {str(row.pk)}
    return End(len(refunds), row.status)


@pytest.mark.parametrize("honours_keys", [True, False], ids=["honoured", "alone"])
@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.step}-{line.moment}")
def test_killed_once(
    job: Job, gate: Gate, ledger: Ledger, line: Line, honours_keys: bool
) -> None:
    job.run_to(gate, line.step, line.moment)

    assert job.knows() == {*line.knows}
    assert job.run_until_over() == [0], job.told
    assert end_of(ledger) == (line.honoured if honours_keys else line.alone)
    if not honours_keys:
        assert gate.count("act") == 1


@pytest.mark.parametrize("honours_keys", [True, False], ids=["honoured", "alone"])
def test_killed_at_every_step_of_one_job(
    job: Job, gate: Gate, ledger: Ledger, honours_keys: bool
) -> None:
    for step in STEPS:
        for moment in MOMENTS:
            if (step, moment) == ("wait", "after"):
                continue  # whoever comes again finds it decided, and does not wait
            if step == "act" and not honours_keys:
                continue
            job.run_to(gate, step, moment)
            if step == "wait":
                gate.on_wait()

    assert job.run_until_over() == [0], job.told
    assert end_of(ledger) == End(1, "resolved")


def test_the_table_is_complete() -> None:
    places = [(step, moment) for step in STEPS for moment in MOMENTS]
    assert [(line.step, line.moment) for line in LINES] == places

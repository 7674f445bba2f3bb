"""New input while the thread is busy: wait in line, take its place, or be refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hitl_approvals import Approve, run_turn, services, start_turn
from hitl_approvals.exceptions import ThreadBusy
from hitl_approvals.models import AgentTurn, PendingInterrupt
from tests.concurrency import agents_that_race  # noqa: F401  registers the agent
from tests.concurrency.meeting import errors, together

pytestmark = pytest.mark.django_db(transaction=True)
START = partial(start_turn, "racer", "one", thread_id="shared")


def _policy(settings: Any, policy: str) -> None:
    settings.HITL_APPROVALS = {"DISPATCHER": "worker", "THREAD_POLICY": policy}


def test_queued_turns_run_in_the_order_in_which_they_came() -> None:
    first, second, third = START(), START(), START()
    assert [second.blocked, third.blocked] == [True, True]

    order = []
    for _turn in range(3):
        (pk,) = AgentTurn.objects.filter(status="ready", blocked=False).values_list(
            "pk", flat=True
        )
        assert run_turn(pk) == "suspended"
        assert run_turn(third.pk) == "dropped"
        (row,) = PendingInterrupt.objects.filter(turn=pk)
        services.decide(row.pk, Approve(), by=None, via="test")
        assert run_turn(pk) == "completed"
        order.append(pk)

    assert order == [first.pk, second.pk, third.pk]


def test_cancel_lets_new_input_take_the_place_of_the_old(settings: Any) -> None:
    _policy(settings, "cancel")
    first = START(run=True)
    assert first.status == "suspended"

    second = START(run=True)

    first.refresh_from_db()
    assert (first.status, second.status) == ("cancelled", "suspended")
    statuses = PendingInterrupt.objects.values_list("turn", "status")
    assert sorted(statuses) == sorted([(first.pk, "cancelled"), (second.pk, "pending")])


@pytest.mark.parametrize("run", [True, False])
def test_refuse_starts_nothing_while_the_thread_is_busy(
    settings: Any, run: bool
) -> None:
    _policy(settings, "refuse")
    first = START(run=run)

    with pytest.raises(ThreadBusy):
        START(run=run)

    assert AgentTurn.objects.count() == 1
    services.cancel(first.pk, by=None, via="test")
    assert START(run=run).pk != first.pk


@pytest.mark.concurrency
def test_refuse_lets_one_of_four_in_that_come_together(settings: Any) -> None:
    _policy(settings, "refuse")

    results = together(START, START, START, START)

    assert len(errors(results)) == 3
    assert all(isinstance(one, ThreadBusy) for one in errors(results))
    assert AgentTurn.objects.count() == 1

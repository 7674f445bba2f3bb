"""Workers that wake up after their turn went on without them: ways that the model found.

A sleeper is a process that stops right before it writes down what its call did. Each
test is the shortest trace that `tests/model` shows when one guard is left out, told to
the real services.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import pytest
from django.db import IntegrityError

from hitl_approvals import TurnFailed, services
from hitl_approvals.exceptions import ToolNotStarted
from hitl_approvals.gate import batch
from hitl_approvals.models import AgentTurn
from hitl_approvals.registry import registry
from hitl_approvals.schemas import ToolSignature
from hitl_approvals.services import effects, suspension, turns
from tests.support.agents import call, mail
from tests.support.turns import (
    begin,
    begin_owed,
    decide,
    events,
    go_silent,
    make_due,
    only,
    pass_deadlines,
    recover,
    resume,
    step_statuses,
)
from tests.support.world import Crash, acts_then, acts_then_raises, raises

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
TRANSFER = call("transfer", "t", to="a")


@pytest.fixture
def sleeper(monkeypatch):
    """Make the next worker fall asleep at a write; calling the result wakes it up."""
    asleep: list[Callable[[], Any]] = []

    def fall_asleep(write: str) -> Callable[[], Any]:
        original = getattr(effects, write)

        def stop(*args, **kwargs):
            monkeypatch.setattr(effects, write, original)
            asleep.append(lambda: original(*args, **kwargs))
            raise Crash

        monkeypatch.setattr(effects, write, stop)
        return lambda: asleep.pop()()

    return fall_asleep


def run_again(turn):
    """Put the sleeping worker's call in doubt and let it be called a second time."""
    assert recover(turn) == "suspended"
    pass_deadlines(turn)
    services.settle(only(turn).pk, "run_again", by=None, via="test")


def test_a_late_result_does_not_keep_the_next_worker_from_recording(world, sleeper):
    wake_up = sleeper("record")
    turn = begin([MAIL])
    decide(only(turn))
    with pytest.raises(Crash):
        resume(turn)
    run_again(turn)
    world.plan("mail", acts_then(wake_up))

    outcome = resume(turn)

    row = only(turn)
    assert "late_result" in events(row)
    assert step_statuses(turn) == ["unknown", "succeeded"]
    assert (outcome, row.status) == ("completed", "resolved")


def test_a_late_result_does_not_leave_a_decision_in_a_turn_that_failed(
    sleeper, make_agent
):
    fails: list[bool] = []

    def agent(turn, _input):
        if fails:
            wake_up()
            raise TurnFailed("The customer hung up.")
        return turn.call_tools([MAIL])

    wake_up = sleeper("record")
    turn = begin(agent=make_agent(agent, mail))
    decide(only(turn))
    with pytest.raises(Crash):
        resume(turn)
    run_again(turn)
    fails.append(True)

    assert resume(turn) == "failed"
    assert only(turn).status == "cancelled"


def test_a_start_that_never_left_does_not_withdraw_a_repeat_under_way(world, sleeper):
    wake_up = sleeper("not_started")
    world.plan("transfer", raises(ToolNotStarted("The bank is closed.")))
    turn = begin([TRANSFER])
    decide(only(turn))
    with pytest.raises(Crash):
        resume(turn)

    def cancel_and_wake_up():
        services.cancel(turn.pk, by=None, via="test")
        wake_up()
        assert only(turn).status == "decided"

    world.plan("transfer", acts_then(cancel_and_wake_up))
    go_silent(turn)
    make_due(turn)
    resume(turn)

    assert world.names() == ["transfer"]
    assert only(turn).status == "resolved"
    assert step_statuses(turn) == ["succeeded"]


def test_a_claimer_that_met_the_last_turn_does_not_block_the_thread(monkeypatch):
    turn = begin_owed([MAIL])
    AgentTurn.objects.filter(pk=turn.pk).update(active_thread=turn.thread_key)

    def meet_the_turn_that_was_there(*args, **kwargs):
        raise IntegrityError

    with monkeypatch.context() as asleep:
        asleep.setattr(turns, "run_alone", meet_the_turn_that_was_there)
        assert turns.claim(turn.pk, [("scripted", "2")]) is None

    assert resume(turn) == "suspended"


@pytest.fixture
def other_transfer():
    """Let the process come back with a `transfer` that takes something else."""
    tools = registry.agents["scripted"].tools
    before = tools["transfer"]

    def deploy():
        def transfer(to: str, currency: str = "EUR") -> str:
            """Transfer in a currency."""
            return ""

        tools["transfer"] = after = copy(before)
        after.signature = ToolSignature.of(transfer, name="transfer")

    yield deploy
    tools["transfer"] = before


def test_a_started_call_that_cannot_be_repeated_any_more_is_a_doubt(
    world, other_transfer, monkeypatch
):
    world.plan("transfer", acts_then_raises(Crash()))
    turn = begin([TRANSFER])
    decide(only(turn))
    with pytest.raises(Crash):
        resume(turn)
    ends: list[int] = []

    def suspend_a_few_times(*args, **kwargs):
        ends.append(1)
        if len(ends) > 3:
            raise Crash
        return suspension.suspend(*args, **kwargs)

    monkeypatch.setattr(batch, "suspend", suspend_a_few_times)
    other_transfer()

    assert recover(turn) == "suspended"
    assert only(turn).status == "in_doubt"
    assert world.names() == ["transfer"]

"""Calls in doubt of turns that are over, stuck, or run by code that lost the tool."""

from __future__ import annotations

import pytest

from hitl_approvals import services
from hitl_approvals.exceptions import TransitionNotAllowed
from hitl_approvals.models import AgentTurn
from hitl_approvals.registry import registry
from tests.support.agents import call
from tests.support.turns import (
    begin,
    decide_and_resume,
    events,
    only,
    pass_deadlines,
    recover,
    resume,
    settle,
    step_statuses,
    steps,
)
from tests.support.world import Crash, acts_then_raises

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
NOTE = call("note", "n", text="x")


def test_an_overdue_call_of_a_closed_turn_becomes_a_doubt_that_only_records(world):
    world.plan("mail", acts_then_raises(Crash()))
    turn = begin([MAIL])
    with pytest.raises(Crash):
        decide_and_resume(turn)
    services.cancel(turn.pk, by=None, via="test")
    assert services.sweep().doubted == 0
    pass_deadlines(turn)

    assert services.sweep().doubted == 1
    assert services.sweep().doubted == 0

    row = only(turn)
    assert (row.status, step_statuses(turn)) == ("in_doubt", ["unknown"])
    with pytest.raises(TransitionNotAllowed, match="turn is over"):
        settle(row, "run_again")
    settle(row, "happened", result="sent")
    turn.refresh_from_db()
    assert (turn.status, turn.undecided) == ("cancelled", 0)
    assert step_statuses(turn) == ["succeeded"]
    assert events(row)[-2:] == ["in_doubt", "settled_happened"]
    assert resume(turn) == "dropped"
    assert world.names() == ["mail"]


def test_an_overdue_free_call_of_a_closed_turn_gets_its_row(world):
    world.plan("note", acts_then_raises(Crash()))
    with pytest.raises(Crash):
        begin([NOTE])
    turn = AgentTurn.objects.get()
    services.cancel(turn.pk, by=None, via="test")
    pass_deadlines(turn)

    assert services.sweep().doubted == 1

    row = only(turn)
    assert (row.status, row.tool_name, row.args) == ("in_doubt", "note", {"text": "x"})
    assert steps(turn)[0].interrupt_id == row.pk
    assert events(row) == ["in_doubt"]
    settle(row, "give_up")


def test_doubts_of_a_stuck_turn_are_settled_before_it_goes_on(world, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 1}
    world.plan("mail", acts_then_raises(Crash()))
    turn = begin([MAIL])
    with pytest.raises(Crash):
        decide_and_resume(turn)
    recover(turn)
    assert turn.status == "needs_attention"
    pass_deadlines(turn)
    assert services.sweep().doubted == 1

    retried = services.retry(turn.pk, by=None, via="test")

    assert (retried.status, retried.undecided) == ("suspended", 1)
    settle(only(turn), "happened", result="sent")
    assert resume(turn) == "completed"
    assert world.names() == ["mail"]


def test_a_doubt_of_a_stuck_turn_may_be_settled_before_the_retry(world, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 1}
    world.plan("mail", acts_then_raises(Crash()))
    turn = begin([MAIL])
    with pytest.raises(Crash):
        decide_and_resume(turn)
    recover(turn)
    pass_deadlines(turn)
    services.sweep()

    settle(only(turn), "run_again")
    turn.refresh_from_db()
    assert (turn.status, turn.undecided) == ("needs_attention", 0)
    services.retry(turn.pk, by=None, via="test")

    assert resume(turn) == "completed"
    assert world.names() == ["mail", "mail"]


@pytest.fixture
def without_tools():
    """The scripted agent in a process whose code has lost two tools."""
    tools = registry.agents["scripted"].tools
    kept = dict(tools)

    def lose():
        for name in ("mail", "note"):
            del tools[name]

    yield lose
    tools.clear()
    tools.update(kept)


def test_a_started_call_whose_tool_is_gone_is_a_doubt_too(world, without_tools):
    world.plan("mail", acts_then_raises(Crash()))
    turn = begin([MAIL])
    with pytest.raises(Crash):
        decide_and_resume(turn)
    without_tools()

    assert recover(turn) == "suspended"
    assert only(turn).status == "in_doubt"


def test_a_started_free_call_whose_tool_is_gone_stops_visibly_and_is_a_doubt(
    world, without_tools
):
    world.plan("note", acts_then_raises(Crash()))
    with pytest.raises(Crash):
        begin([NOTE])
    turn = AgentTurn.objects.get()
    without_tools()

    assert recover(turn) == "needs_attention"
    assert "`note`" in turn.last_error
    pass_deadlines(turn)
    assert services.sweep().doubted == 1
    row = only(turn)
    assert (row.status, row.args) == ("in_doubt", {"text": "x"})
    assert row.policy["timeout"] == 60
    assert list(row.allowed_decisions) == ["approve", "edit", "reject"]

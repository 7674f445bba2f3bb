"""Agents that swallow, return nonsense, or say that they are done for."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from hitl_approvals import InterruptSuspended, TurnFailed, services
from hitl_approvals.exceptions import LeaseLost
from hitl_approvals.models import AgentTurn
from tests.support.agents import call, mail
from tests.support.turns import (
    begin,
    decide,
    decide_and_resume,
    events,
    only,
    resume,
    rows,
    steps,
    waiting,
)
from tests.support.world import acts_then, raises

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")


def swallowing(make_agent, *replies, caught=None):
    """Make an agent that goes on whatever its calls raise."""
    left = list(replies)

    def stubborn(turn, given):
        try:
            return turn.call_tools(left.pop(0) if len(left) > 1 else left[0])
        except Exception as error:  # noqa: BLE001  it is what is tested
            if caught is not None:
                caught.append(type(error).__name__)
            return "I went on"

    return make_agent(stubborn)


def test_an_agent_that_swallows_the_pause_is_suspended_all_the_same(world, make_agent):
    turn = begin(agent=swallowing(make_agent, [MAIL]))

    assert (turn.status, turn.output) == ("suspended", None)
    assert [row.status for row in waiting(turn)] == ["pending"]
    assert decide_and_resume(turn) == "completed"
    assert turn.output[0]["status"] == "ok"
    assert world.names() == ["mail"]


def test_after_a_swallowed_pause_nothing_more_runs(world, make_agent):
    refused = []

    def stubborn(turn, given):
        for work in (
            lambda: turn.call_tools([MAIL]),
            lambda: turn.call_tools([call("note", "n", text="x")]),
            lambda: mail(to="b"),
            lambda: turn.step("model", world.model_calls.append, "asked"),
            lambda: turn.interrupt("why?"),
        ):
            try:
                work()
            except InterruptSuspended:
                refused.append(True)
        raise ValueError("and now this")

    turn = begin(agent=make_agent(stubborn))

    assert turn.status == "suspended"
    assert refused == [True] * 5
    assert world.effects == []
    assert world.model_calls == []
    assert len(rows(turn)) == 1


def test_a_swallowed_divergence_still_needs_attention(world, make_agent):
    other = [call("mail", "m", to="b")]
    turn = begin(agent=swallowing(make_agent, [MAIL], other))

    assert decide_and_resume(turn) == "needs_attention"
    assert world.effects == []


def test_a_swallowed_refusal_to_start_is_still_tried_again(world, make_agent):
    world.plan("mail", raises(ConnectionRefusedError("closed")))

    turn = begin(agent=swallowing(make_agent, [MAIL]))

    assert decide_and_resume(turn) == "ready"
    assert resume(turn) == "completed"
    assert turn.output[0]["status"] == "ok"


def test_a_swallowed_loss_of_the_lease_ends_the_run(world, make_agent):
    outcomes = []
    turn = begin(agent=swallowing(make_agent, [MAIL], caught=outcomes))
    decide(only(turn))
    outcomes.clear()

    def taken_over(*args, **kwargs):
        raise LeaseLost

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hitl_approvals.services.effects.start", taken_over)
        outcome = resume(turn)

    assert outcomes == ["LeaseLost"]
    assert outcome == "lost"
    assert (turn.status, turn.output) == ("running", None)
    assert world.effects == []


def test_a_swallowed_database_error_does_not_complete_the_turn(world, make_agent):
    """The call has no answer, so an agent that goes on must not be believed."""

    turn = begin(agent=swallowing(make_agent, [MAIL]))
    decide(only(turn))

    def gone(*args, **kwargs):
        raise OperationalError("server closed the connection")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hitl_approvals.services.effects.start", gone)
        assert resume(turn) == "ready"

    assert "server closed the connection" in turn.last_error
    assert only(turn).status == "decided"
    assert resume(turn) == "completed"
    assert world.names() == ["mail"]


@pytest.mark.parametrize(
    "output", [object(), {1, 2}, float("nan"), {1: "a"}, "x" * 300_000]
)
def test_an_output_that_is_no_json_is_an_error_that_somebody_sees(
    world, make_agent, output, settings
):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 2}

    def odd(turn, given):
        turn.call_tools([call("note", "n", text="x")])
        return output

    turn = begin(agent=make_agent(odd))
    assert turn.status == "ready"
    assert "PayloadRejected" in turn.last_error

    assert resume(turn) == "needs_attention"
    assert "PayloadRejected" in turn.last_error
    assert events(turn) == ["turn_needs_attention"]
    assert world.names() == ["note"]


def test_a_step_whose_result_is_no_json_is_an_error_that_names_it(world, make_agent):
    def odd(turn, given):
        return turn.step("thinking", object)

    turn = begin(agent=make_agent(odd))

    assert turn.status == "ready"
    assert "`thinking`" in turn.last_error
    assert "result_type=" in turn.last_error
    assert steps(turn, kind="model") == []


def test_turn_failed_ends_the_turn_at_once_and_withdraws_what_is_left(
    world, make_agent
):
    calls = [[MAIL, call("pay", "p", order="A", amount=1)], []]

    def desperate(turn, given):
        turn.call_tools(calls.pop(0))
        raise TurnFailed("the customer is gone")

    turn = begin(agent=make_agent(desperate))

    assert decide_and_resume(turn) == "failed"
    assert (turn.error, turn.active_thread) == ("the customer is gone", None)
    assert turn.finished_at is not None
    assert world.effects == []
    assert [(row.status, row.outcome_status) for row in rows(turn)] == [
        ("cancelled", "not_requested_again")
    ] * 2
    assert events(turn) == ["turn_failed"]
    assert resume(turn) == "dropped"


def test_odd_characters_in_an_error_are_stored_and_the_turn_goes_on(world, make_agent):
    errors = [ValueError("nul \x00 half \ud800 end"), None]

    def odd(turn, given):
        error = errors.pop(0)
        if error:
            raise error
        raise TurnFailed("nul \x00 half \ud800 end")

    turn = begin(agent=make_agent(odd))
    assert turn.status == "ready"
    assert turn.last_error.endswith("end")

    assert resume(turn) == "failed"
    assert turn.error.endswith("end")


def test_an_agent_that_cancels_its_own_turn_is_lost(world, make_agent):
    def suicidal(turn, given):
        services.cancel(turn.id, by=None, via="test")
        turn.call_tools([call("note", "n", text="x")])

    turn = begin(agent=make_agent(suicidal))

    assert turn.status == "cancelled"
    assert world.effects == []
    assert events(turn) == ["turn_cancelled"]


def test_a_turn_cancelled_during_a_call_keeps_the_effect_and_the_record(world):
    world.plan("mail", acts_then(lambda: services.cancel(turn.pk, by=None, via="test")))
    turn = begin([MAIL, call("pay", "p", order="A", amount=1)])

    assert decide_and_resume(turn) == "lost"
    assert world.names() == ["mail"]
    assert turn.status == "cancelled"
    mailed, paid = rows(turn)
    assert (mailed.status, mailed.outcome_status) == ("resolved", "succeeded")
    assert (paid.status, paid.outcome_status) == ("cancelled", "withdrawn")
    assert [step.status for step in steps(turn)] == ["succeeded"]


def test_a_call_that_never_left_a_turn_that_was_cancelled_is_withdrawn(world):
    def cancel_and_fail(name, args):
        services.cancel(turn.pk, by=None, via="test")
        raise ConnectionRefusedError("closed")

    world.plan("mail", cancel_and_fail)
    turn = begin([MAIL])

    assert decide_and_resume(turn) == "lost"
    row = only(turn)
    assert (row.status, row.outcome_status) == ("cancelled", "not_run")
    assert events(row) == ["raised", "approved", "cancelled"]
    assert [step.status for step in steps(turn)] == ["not_started"]
    assert AgentTurn.objects.get(pk=turn.pk).status == "cancelled"


def test_an_agent_that_stops_for_somebody_elses_interrupt_is_stopped_visibly(
    world, make_agent
):
    def lost(turn, given):
        raise InterruptSuspended("elsewhere")

    turn = begin(agent=make_agent(lost))

    assert turn.status == "needs_attention"
    assert "interrupt elsewhere, which is none of this turn" in turn.last_error

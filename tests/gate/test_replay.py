"""What is on record is replayed: after a pause, an error and a crash."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import BaseModel

from hitl_approvals import Approve, run_turn, services
from hitl_approvals.models import AgentTurn, DbNow
from tests.support.agents import call
from tests.support.turns import (
    begin,
    decide_and_resume,
    events,
    only,
    recover,
    resume,
    rows,
    step_statuses,
    steps,
)
from tests.support.world import Crash, acts_then_raises, raises

pytestmark = pytest.mark.django_db


def test_model_replies_and_finished_tools_are_not_repeated_on_resume(world):
    turn = begin(
        [call("note", "n", text="x"), call("read", "r", name="y")],
        [call("mail", "m", to="a")],
        [call("pay", "p", order="A", amount=1)],
    )
    decide_and_resume(turn)
    decide_and_resume(turn)

    assert turn.status == "completed"
    assert world.names() == ["note", "read", "mail", "pay"]
    assert world.model_calls == [f"reply {n}" for n in range(4)]
    assert [step.status for step in steps(turn, kind="model")] == ["succeeded"] * 4
    assert [one["content"] for one in turn.output] == [
        f'{{"effect": {n}}}' for n in range(1, 5)
    ]


def test_a_recorded_result_is_told_in_the_same_words_every_time(world, make_agent):
    seen = []

    def listener(turn, given):
        told = turn.call_tools([call("note", "n", text="x")])
        seen.append(told)
        return turn.call_tools([call("mail", "m", to="a")])

    turn = begin(agent=make_agent(listener))
    decide_and_resume(turn)

    first, second = seen
    assert first == second
    assert world.names() == ["note", "mail"]


def test_an_agents_error_is_tried_again_and_repeats_nothing(world, make_agent):
    failures = [ValueError("the model is away"), ValueError("still away")]

    def flaky(turn, given):
        turn.step("model", world.model_calls.append, "asked")
        turn.call_tools([call("note", "n", text="x")])
        if failures:
            raise failures.pop(0)
        return "fine"

    turn = begin(agent=make_agent(flaky))
    assert (turn.status, turn.attempts) == ("ready", 1)
    assert turn.last_error == "ValueError: the model is away"
    assert turn.lease_until is turn.lease_token is None

    assert resume(turn) == "ready"
    assert turn.attempts == 2
    assert resume(turn) == "completed"
    assert world.model_calls == ["asked"]
    assert world.names() == ["note"]
    assert turn.output == "fine"


def test_the_wait_after_an_error_doubles_and_a_hint_before_is_dropped(
    world, make_agent, settings
):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "BACKOFF": 100}

    def broken(turn, given):
        raise ValueError("no")

    turn = begin(agent=make_agent(broken))
    waits = []
    for _ in range(3):
        assert run_turn(turn.pk) == "dropped"
        found = AgentTurn.objects.annotate(now=DbNow()).get(pk=turn.pk)
        waits.append((found.next_run_at - found.now).total_seconds())
        resume(turn)

    assert 70 < waits[0] < 121
    assert 150 < waits[1] < 241
    assert 230 < waits[2] <= 361


def test_attempts_used_up_by_errors_show_the_turn_to_a_person(
    world, make_agent, settings
):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 2}

    def broken(turn, given):
        raise ValueError("no")

    turn = begin(agent=make_agent(broken))

    assert resume(turn) == "needs_attention"
    assert turn.last_error == "ValueError: no"
    assert events(turn) == ["turn_needs_attention"]
    assert resume(turn) == "dropped"


def test_a_pause_for_a_person_gives_the_turn_fresh_attempts(world, make_agent):
    failures = [ValueError("one"), ValueError("two")]

    def flaky(turn, given):
        if failures:
            raise failures.pop(0)
        return turn.call_tools([call("mail", "m", to="a")])

    turn = begin(agent=make_agent(flaky))
    resume(turn)
    resume(turn)

    assert (turn.status, turn.attempts) == ("suspended", 0)


def test_a_crash_before_the_first_step_repeats_nothing_but_the_model(
    world, monkeypatch
):
    def die(*args, **kwargs):
        raise Crash

    monkeypatch.setattr("hitl_approvals.gate.batch.suspend", die)
    with pytest.raises(Crash):
        begin([call("mail", "m", to="a")])
    monkeypatch.undo()
    turn = AgentTurn.objects.get()
    assert (turn.status, rows(turn)) == ("running", [])

    assert recover(turn) == "suspended"
    # The reply was never committed, so the model is asked for it again: at least once.
    assert world.model_calls == ["reply 0", "reply 0"]
    assert [row.tool_name for row in rows(turn)] == ["mail"]


def test_a_crash_after_the_approval_and_before_the_call_loses_nothing(
    world, monkeypatch
):
    turn = begin([call("mail", "m", to="a")])
    row = only(turn)
    services.decide(row.pk, Approve(), by=None, via="test")

    def die(*args, **kwargs):
        raise Crash

    monkeypatch.setattr("hitl_approvals.services.effects.start", die)
    with pytest.raises(Crash):
        resume(turn)
    monkeypatch.undo()
    assert recover(turn) == "completed"

    assert world.effects == [("mail", {"to": "a"})]
    assert world.model_calls == ["reply 0", "reply 1"]
    assert events(row) == ["raised", "approved", "resolved"]


def test_a_crash_after_the_record_runs_nothing_again(world, make_agent):
    deaths = [Crash()]

    def mortal(turn, given):
        told = turn.call_tools(
            [call("mail", "m", to="a"), call("pay", "p", order="A", amount=1)]
        )
        if deaths:
            raise deaths.pop()
        return [one["status"] for one in told]

    turn = begin(agent=make_agent(mortal))
    with pytest.raises(Crash):
        decide_and_resume(turn)
    assert step_statuses(turn) == ["succeeded", "succeeded"]

    assert recover(turn) == "completed"
    assert world.names() == ["mail", "pay"]
    assert [events(row) for row in rows(turn)] == [
        ["raised", "approved", "resolved"]
    ] * 2


def test_a_crash_in_a_reading_tool_reads_again(world):
    world.plan("read", acts_then_raises(Crash()))
    with pytest.raises(Crash):
        begin([call("read", "r", name="x")])
    turn = AgentTurn.objects.get()
    assert steps(turn) == []

    assert recover(turn) == "completed"
    assert world.names() == ["read", "read"]
    assert step_statuses(turn) == ["succeeded"]


def test_an_error_of_a_reading_tool_is_tried_again(world):
    world.plan("read", raises(OSError("the disk")))
    turn = begin([call("read", "r", name="x")])
    assert (turn.status, turn.last_error) == ("ready", "OSError: the disk")

    assert resume(turn) == "completed"
    assert world.names() == ["read"]


def test_a_gated_reading_tool_runs_once_and_is_resolved(world):
    turn = begin([call("read_secret", "r", name="x")])
    assert world.effects == []

    assert decide_and_resume(turn) == "completed"
    assert world.names() == ["read_secret"]
    assert events(only(turn)) == ["raised", "approved", "resolved"]


def test_steps_of_one_name_are_told_apart_by_their_order(world, make_agent):
    def counting(turn, given):
        numbers = [turn.step("number", world.act, "read", name=n) for n in range(3)]
        turn.call_tools([call("mail", "m", to="a")])
        return numbers

    turn = begin(agent=make_agent(counting))
    decide_and_resume(turn)

    assert turn.output == [{"effect": 1}, {"effect": 2}, {"effect": 3}]
    assert [args["name"] for name, args in world.effects if name == "read"] == [0, 1, 2]


class Quote(BaseModel):
    """A reply with a type of its own."""

    price: Decimal


def test_a_typed_step_comes_back_as_its_type(world, make_agent):
    seen = []

    def typed(turn, given):
        quote = turn.step("q", Quote, price=Decimal("1.10"), result_type=Quote)
        seen.append(quote)
        turn.call_tools([call("mail", "m", to="a")])

    turn = begin(agent=make_agent(typed))
    decide_and_resume(turn)

    assert seen == [Quote(price=Decimal("1.10"))] * 2


def test_changing_a_replayed_value_does_not_change_the_journal(world, make_agent):
    def careless(turn, given):
        reply = turn.step("model", dict, tool_calls=[])
        reply["tool_calls"].append("mine")
        turn.call_tools([call("mail", "m", to="a")])
        return reply

    turn = begin(agent=make_agent(careless))
    decide_and_resume(turn)

    assert turn.output == {"tool_calls": ["mine"]}
    (step,) = steps(turn, kind="model")
    assert step.result == {"tool_calls": []}

"""The one protocol of all kinds of agent, spoken by a made-up kind."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from hitl_approvals import Approve, Respond, run_turn, services, start_turn
from hitl_approvals.agents.base import Completed, Suspended
from hitl_approvals.enums import InterruptKind
from hitl_approvals.exceptions import DecisionNotAllowed
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.services.suspension import Request
from tests.support.turns import decide, events, make_due, rows

pytestmark = pytest.mark.django_db


class Snapshot:
    """An agent that keeps its own state and asks one question a step."""

    def __init__(self, questions):
        self.questions = questions
        self.resumed_with = []

    def start(self, run, input):  # noqa: A002  the protocol's word
        return self.ask(run, 0)

    def resume(self, run, state, decisions):
        self.resumed_with.append(
            (state, [(one.payload, one.decision_value) for one in decisions])
        )
        number = state["asked"]
        if number == len(self.questions):
            return Completed([one.decision_value for one in decisions])
        return self.ask(run, number)

    def ask(self, run, number):
        request = make_request(f"{run.turn.pk}-{number}", self.questions[number])
        return Suspended([request], state={"asked": number + 1})


def make_request(key, payload):
    return Request(
        key=key[-64:],
        kind=InterruptKind.QUESTION,
        fields={"payload": payload, "allowed_decisions": ["respond", "reject"]},
    )


@pytest.fixture
def kind(monkeypatch):
    """Install a kind of agent as a module of the package."""

    def install(agent):
        module = ModuleType("hitl_approvals.agents.made_up")
        module.make = lambda definition: agent
        monkeypatch.setitem(sys.modules, module.__name__, module)
        return agent

    return install


def named(make_agent, kind="made_up"):
    def nothing(turn, given):
        raise AssertionError("the kind runs the turn, not the function")

    return make_agent(nothing, kind=kind)


def test_a_kind_keeps_its_state_and_gets_the_decisions(kind, make_agent):
    agent = kind(Snapshot(["first?", "second?"]))
    turn = start_turn(named(make_agent), None, run=True)
    assert (turn.status, turn.state, turn.undecided) == ("suspended", {"asked": 1}, 1)

    for answer in ("one", "two"):
        (row,) = PendingInterrupt.objects.filter(turn=turn, status="pending")
        decide(row, Respond(answer))
        run_turn(turn.pk)

    turn.refresh_from_db()
    assert (turn.status, turn.output) == ("completed", ["one", "two"])
    assert agent.resumed_with == [
        ({"asked": 1}, [("first?", "one")]),
        ({"asked": 2}, [("first?", "one"), ("second?", "two")]),
    ]
    assert [events(row)[:2] for row in rows(turn)] == [["raised", "responded"]] * 2


def test_decisions_come_in_the_order_in_which_they_were_asked(kind, make_agent):
    seen = []

    class Batch:
        def start(self, run, input):  # noqa: A002  the protocol's word
            return Suspended(
                [make_request(f"{n}{run.turn.pk}", n) for n in range(8)], state={}
            )

        def resume(self, run, state, decisions):
            seen.append([one.payload for one in decisions])
            return Completed(None)

    kind(Batch())
    turn = start_turn(named(make_agent), None, run=True)
    for row in reversed(rows(turn)):
        decide(row, Respond(None))

    assert run_turn(turn.pk) == "completed"
    assert seen == [list(range(8))]


def test_a_kind_that_does_not_exist_is_an_error_that_names_it(make_agent, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 1}

    turn = start_turn(named(make_agent, kind="nonsense"), None, run=True)

    assert turn.status == "needs_attention"
    assert "'nonsense', which is unknown" in turn.last_error


@pytest.mark.parametrize(
    "suspended",
    [
        Suspended([make_request("k", float("nan"))]),
        Suspended([make_request("k", "x?")], state={"now": object()}),
    ],
    ids=["question", "state"],
)
def test_what_a_kind_cannot_store_is_an_error_that_somebody_sees(
    kind, make_agent, suspended
):
    class Odd:
        def start(self, run, input):  # noqa: A002  the protocol's word
            return suspended

        resume = None

    kind(Odd())
    turn = start_turn(named(make_agent), None, run=True)

    assert turn.status == "ready"
    assert "PayloadRejected" in turn.last_error
    assert rows(turn) == []


def test_a_kind_that_fails_after_a_decision_keeps_the_decision(kind, make_agent):
    failures = [ValueError("upgraded")]

    class Flaky(Snapshot):
        def resume(self, run, state, decisions):
            if failures:
                raise failures.pop()
            return super().resume(run, state, decisions)

    agent = kind(Flaky(["first?"]))
    turn = start_turn(named(make_agent), None, run=True)
    decide(rows(turn)[0], Respond("one"))
    assert run_turn(turn.pk) == "ready"
    assert rows(turn)[0].status == "decided"
    make_due(turn)

    assert run_turn(turn.pk) == "completed"
    assert agent.resumed_with == [({"asked": 1}, [("first?", "one")])]


def test_a_question_of_a_kind_cannot_be_approved(kind, make_agent):
    kind(Snapshot(["first?"]))
    turn = start_turn(named(make_agent), None, run=True)

    with pytest.raises(DecisionNotAllowed):
        services.decide(rows(turn)[0].pk, Approve(), by=None, via="test")

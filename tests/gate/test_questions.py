"""Questions that an agent asks a person, and how the answer finds its question."""

from __future__ import annotations

import pytest

from hitl_approvals import ApprovalRejected, Approve, Edit, Reject, Respond, services
from hitl_approvals.exceptions import DecisionNotAllowed, PayloadRejected
from tests.support.agents import call
from tests.support.turns import (
    begin,
    decide,
    decide_and_resume,
    events,
    only,
    pass_expires_at,
    resume,
    rows,
    waiting,
)

pytestmark = pytest.mark.django_db


def asking(make_agent, *questions, **options):
    """Make an agent that asks these questions in turn and returns the answers."""

    def ask(turn, given):
        return [turn.interrupt(payload, **options) for payload in questions]

    return make_agent(ask)


def test_an_answer_is_the_value_of_the_call(world, make_agent):
    turn = begin(agent=asking(make_agent, {"question": "Which one?"}))
    row = only(turn)
    assert (turn.status, row.kind, row.status) == ("suspended", "question", "pending")
    assert row.payload == {"question": "Which one?"}
    assert list(row.allowed_decisions) == ["respond", "reject"]
    assert (row.tool_name, row.args_text) == ("", None)

    assert decide_and_resume(turn, Respond({"one": [1, None]})) == "completed"

    assert turn.output == [{"one": [1, None]}]
    row = only(turn)
    assert (row.status, row.outcome_status) == ("resolved", "answered")
    assert events(row) == ["raised", "responded", "resolved"]


def test_questions_are_asked_one_after_the_other(world, make_agent):
    turn = begin(agent=asking(make_agent, "first?", "second?", "first?"))

    for number in range(3):
        (row,) = waiting(turn)
        decide(row, Respond(number))
        resume(turn)

    assert turn.output == [0, 1, 2]
    assert [row.payload for row in rows(turn)] == ["first?", "second?", "first?"]
    assert [events(row) for row in rows(turn)] == [
        ["raised", "responded", "resolved"]
    ] * 3


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
def test_an_empty_answer_is_an_answer(world, make_agent, value):
    turn = begin(agent=asking(make_agent, "yes?"))

    assert decide_and_resume(turn, Respond(value)) == "completed"
    assert turn.output == [value]


def test_a_refused_question_raises_with_the_reason(world, make_agent):
    caught = []

    def ask(turn, given):
        try:
            return turn.interrupt("may I?")
        except ApprovalRejected as refusal:
            caught.append(refusal.reason)
            return "without"

    turn = begin(agent=make_agent(ask))

    assert decide_and_resume(turn, Reject("ask your manager")) == "completed"
    assert turn.output == "without"
    assert caught == ["ask your manager"]
    assert events(only(turn)) == ["raised", "rejected", "resolved"]


def test_a_question_that_nobody_answers_in_time_raises(world, make_agent, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "EXPIRES_IN": 60}

    def ask(turn, given):
        with pytest.raises(ApprovalRejected, match="in time"):
            turn.interrupt("anybody?")
        return "alone"

    turn = begin(agent=make_agent(ask))
    pass_expires_at(only(turn))
    services.sweep()

    assert resume(turn) == "completed"
    assert turn.output == "alone"
    assert only(turn).outcome_status == "expired"


def test_an_answer_that_does_not_fit_the_schema_is_refused(world, make_agent):
    schema = {
        "type": "object",
        "properties": {"amount": {"type": "integer"}},
        "required": ["amount"],
    }
    turn = begin(agent=asking(make_agent, "how much?", response_schema=schema))
    row = only(turn)

    with pytest.raises(PayloadRejected) as refusal:
        decide(row, Respond({"amount": "ten"}))

    assert refusal.value.errors[0]["loc"] == "amount"
    assert events(row) == ["raised"]
    assert decide_and_resume(turn, Respond({"amount": 10})) == "completed"
    assert turn.output == [{"amount": 10}]


def test_an_answer_that_is_no_json_is_refused(world, make_agent):
    turn = begin(agent=asking(make_agent, "how much?"))

    with pytest.raises(PayloadRejected):
        decide(only(turn), Respond(float("nan")))

    assert only(turn).status == "pending"


@pytest.mark.parametrize("decision", [Approve(), Edit({"a": 1})])
def test_a_question_can_be_neither_approved_nor_edited(world, make_agent, decision):
    turn = begin(agent=asking(make_agent, "how much?"))

    with pytest.raises(DecisionNotAllowed) as refusal:
        decide(only(turn), decision)

    assert refusal.value.context["allowed"] == ["respond", "reject"]
    assert only(turn).status == "pending"


def test_a_call_cannot_be_answered(world):
    turn = begin([call("mail", "m", to="a")])

    with pytest.raises(DecisionNotAllowed):
        decide(only(turn), Respond("yes"))


def test_another_question_at_the_same_place_stops_with_a_hint(world, make_agent):
    questions = ["old?", "new?"]

    def fickle(turn, given):
        return turn.interrupt(questions.pop(0) if len(questions) > 1 else questions[0])

    turn = begin(agent=make_agent(fickle))

    assert decide_and_resume(turn, Respond("yes")) == "needs_attention"
    assert "'old?'" in turn.last_error
    assert "'new?'" in turn.last_error
    assert "key=" in turn.last_error
    assert only(turn).status == "decided"
    assert events(turn) == ["turn_needs_attention"]


def test_a_key_lets_the_wording_change(world, make_agent):
    questions = ["old?", "new?"]

    def fickle(turn, given):
        wording = questions.pop(0) if len(questions) > 1 else questions[0]
        return turn.interrupt(wording, key="amount")

    turn = begin(agent=make_agent(fickle))

    assert decide_and_resume(turn, Respond("yes")) == "completed"
    assert turn.output == "yes"


def test_keyed_answers_find_their_questions_in_any_order(world, make_agent):
    order = [["a", "b"], ["b", "a"], ["b", "a"]]

    def ask(turn, given):
        names = order.pop(0)
        return {name: turn.interrupt(name, key=name) for name in names}

    turn = begin(agent=make_agent(ask))
    decide_and_resume(turn, Respond("for a"))
    decide_and_resume(turn, Respond("for b"))

    assert turn.status == "completed"
    assert turn.output == {"a": "for a", "b": "for b"}


def test_one_key_asked_twice_is_one_question(world, make_agent):
    def ask(turn, given):
        return [turn.interrupt("a?", key="a"), turn.interrupt("a?", key="a")]

    turn = begin(agent=make_agent(ask))
    decide_and_resume(turn, Respond(1))

    assert turn.status == "completed"
    assert turn.output == [1, 1]
    assert events(only(turn)) == ["raised", "responded", "resolved"]


def test_a_question_that_cannot_be_stored_is_the_agents_error(
    world, make_agent, settings
):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_PAYLOAD_BYTES": 100}
    turn = begin(agent=asking(make_agent, "x" * 200))

    assert turn.status == "ready"
    assert "PayloadRejected" in turn.last_error
    assert rows(turn) == []


def test_a_schema_that_nobody_could_satisfy_is_the_agents_error(world, make_agent):
    turn = begin(agent=asking(make_agent, "x?", response_schema={"type": "texxt"}))

    assert turn.status == "ready"
    assert "response_schema" in turn.last_error
    assert rows(turn) == []

"""`resume` of a turn of ours: decide and run on here, with other input or options."""

from __future__ import annotations

import uuid

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from hitl_approvals import (
    AlreadyResolved,
    Applied,
    Approve,
    Edit,
    Reject,
    aresume,
    resume,
    run_turn,
    services,
    start_turn,
)
from hitl_approvals.exceptions import (
    DecisionNotAllowed,
    PayloadRejected,
    ReviewerNotAllowed,
    UnsafeContext,
)
from hitl_approvals.models import AgentTurn, PendingInterrupt
from tests.concurrency.meeting import together
from tests.support.agents import call
from tests.support.remote import ask
from tests.support.turns import begin, events, full_events, only, rows, waiting

pytestmark = pytest.mark.django_db(transaction=True)
MAIL = call("mail", "m", to="a")
PAY = call("pay", "p", order="A", amount=1)


@pytest.fixture
def direct(make_agent, world):
    """An agent without recorded steps: it goes straight to its gated call."""
    seen = []

    def direct_agent(turn, prompt):
        seen.append((prompt, turn.execute_options))
        return turn.call_tools([MAIL])[0]["content"]

    name = make_agent(direct_agent)
    return name, seen


def test_the_last_decision_runs_the_turn_here(world):
    turn = begin([MAIL])
    row = only(turn)

    outcome = resume(row.pk, Approve())

    assert isinstance(outcome, Applied)
    assert (outcome.interrupt_id, outcome.decision) == (str(row.pk), Approve())
    assert (outcome.status, outcome.waiting) == ("completed", 0)
    assert outcome.result[0]["status"] == "ok"
    assert (outcome.used, outcome.record, outcome.error) == (None, None, None)
    assert len(world.effects) == 1


def test_with_siblings_open_nothing_runs(world):
    turn = begin([MAIL, PAY])

    outcome = resume(rows(turn)[0].pk, Approve())

    assert (outcome.result, outcome.status, outcome.waiting) == (None, "suspended", 1)
    assert world.effects == []


def test_unknown_decided_and_withdrawn_are_already_resolved(world):
    decided, withdrawn = begin([MAIL]), begin([PAY])
    resume(only(decided).pk, Approve())
    services.cancel(withdrawn.pk, by=None, via="test")

    for pk in (uuid.uuid4(), "never", only(decided).pk, only(withdrawn).pk):
        assert resume(pk, Approve()) == AlreadyResolved(str(pk))
        assert resume(pk, Approve(), input="other") == AlreadyResolved(str(pk))
    assert len(world.effects) == 1


@pytest.mark.parametrize(
    ("decision", "options", "sentence"),
    [
        ({"type": "reject"}, {}, "A rejection needs"),
        (None, {}, "None stands for the decision"),
        (Approve(), {"agent": print}, "agent= goes with store="),
    ],
)
def test_what_is_malformed_is_a_type_error_and_stores_nothing(
    decision, options, sentence
):
    row = only(begin([MAIL]))

    with pytest.raises(TypeError, match=sentence):
        resume(row.pk, decision, **options)

    row.refresh_from_db()
    assert row.status == "pending"


def test_it_refuses_to_run_inside_a_transaction():
    row = only(begin([MAIL]))

    with transaction.atomic(), pytest.raises(UnsafeContext):
        resume(row.pk, Approve())


def test_awaited_it_does_the_same(world):
    turn = begin([MAIL])

    outcome = async_to_sync(aresume)(only(turn).pk, Edit({"to": "b"}))

    assert outcome.status == "completed"
    assert world.effects == [("mail", {"to": "b"})]


def test_other_input_replaces_the_prompt_and_the_decision_is_applied(direct, world):
    name, seen = direct
    turn = start_turn(name, "mail a", run=True)

    outcome = resume(only(turn).pk, Approve(), input="mail a. Reviewer: fine.")

    assert seen == [("mail a", None), ("mail a. Reviewer: fine.", None)]
    assert outcome.status == "completed"
    assert len(world.effects) == 1
    turn.refresh_from_db()
    assert turn.input == "mail a. Reviewer: fine."


def test_execute_options_reach_the_run(direct):
    name, seen = direct
    turn = start_turn(name, "mail a", execute_options={"loud": False}, run=True)

    resume(only(turn).pk, Approve(), execute_options={"loud": True})

    assert seen == [("mail a", {"loud": False}), ("mail a", {"loud": True})]


def test_options_are_kept_for_siblings_that_still_wait(make_agent, world):
    seen = []

    def two_calls(turn, prompt):
        seen.append((prompt, turn.execute_options))
        return len(turn.call_tools([MAIL, PAY]))

    turn = start_turn(make_agent(two_calls), "go", run=True)
    first, second = waiting(turn)

    resume(first.pk, Approve(), input="changed", execute_options={"n": 1})
    outcome = resume(second.pk, Approve())

    assert seen == [("go", None), ("changed", {"n": 1})]
    assert (outcome.result, len(world.effects)) == (2, 2)


def test_other_input_on_recorded_steps_needs_a_restart(world):
    turn = begin([MAIL])
    row = only(turn)

    with pytest.raises(TypeError, match="restart=True"):
        resume(row.pk, Approve(), input=[[PAY]])

    row.refresh_from_db()
    turn.refresh_from_db()
    assert (row.status, turn.status, turn.input) == ("pending", "suspended", [[MAIL]])
    assert events(row) == ["raised"]
    assert world.effects == []


def test_options_alone_need_no_restart(world):
    turn = begin([MAIL])

    outcome = resume(only(turn).pk, Approve(), execute_options={"loud": True})

    assert outcome.status == "completed"
    assert len(world.effects) == 1


def test_a_restart_asks_again_for_what_the_new_input_leads_to(world):
    turn = begin([MAIL])
    old = only(turn)

    outcome = resume(old.pk, Reject("pay instead"), input=[[PAY]], restart=True)

    assert (outcome.status, outcome.waiting) == ("suspended", 1)
    old.refresh_from_db()
    assert (old.status, old.outcome_status) == ("cancelled", "withdrawn")
    assert events(old) == ["raised", "rejected", "cancelled"]
    [asked] = waiting(turn)
    assert asked.tool_name == "pay"
    assert world.effects == []
    turn.refresh_from_db()
    assert (turn.input, turn.restarts) == ([[PAY]], 1)
    assert "turn_restarted" in [event.type for event in full_events(turn)]
    assert resume(asked.pk, Approve()).status == "completed"
    assert [effect[0] for effect in world.effects] == ["pay"]


def test_a_restart_never_lets_an_approval_of_the_old_input_run(world):
    turn = begin([MAIL])

    outcome = resume(only(turn).pk, Approve(), restart=True)

    assert (outcome.status, outcome.waiting) == ("suspended", 1)
    assert world.effects == []
    [again] = waiting(turn)
    assert again.tool_name == "mail"


def test_a_restart_withdraws_the_siblings_that_wait(world):
    turn = begin([MAIL, PAY])
    first, second = rows(turn)

    outcome = resume(first.pk, Approve(), input=[[PAY]], restart=True)

    second.refresh_from_db()
    assert (second.status, second.outcome_status) == ("cancelled", "withdrawn")
    assert (outcome.status, outcome.waiting) == ("suspended", 1)
    assert world.effects == []


def test_input_that_is_no_json_changes_nothing(direct):
    name, _seen = direct
    turn = start_turn(name, "mail a", run=True)

    with pytest.raises(PayloadRejected):
        resume(only(turn).pk, Approve(), input={1, 2})

    assert only(turn).status == "pending"


def test_a_decision_that_is_refused_changes_no_input(direct, make_user):
    name, _seen = direct
    turn = start_turn(name, "mail a", run=True)
    row = only(turn)

    with pytest.raises(DecisionNotAllowed):
        resume(row.pk, {"type": "respond", "value": 1}, input="other")
    with pytest.raises(ReviewerNotAllowed):
        resume(
            row.pk,
            Approve(),
            input="other",
            by=make_user("ann", "view_pendinginterrupt"),
        )

    turn.refresh_from_db()
    assert (turn.input, only(turn).status) == ("mail a", "pending")


def test_a_remote_agents_request_is_decided_and_nothing_runs_here():
    row = ask()

    outcome = resume(row.pk, Approve())

    assert (outcome.status, outcome.result, outcome.waiting) == ("decided", None, 0)
    other = ask()
    with pytest.raises(TypeError, match="belongs to no turn"):
        resume(other.pk, Approve(), input="x")
    assert PendingInterrupt.objects.get(pk=other.pk).status == "pending"


def test_no_worker_sees_the_decision_without_the_change(direct, monkeypatch):
    """The decision and the input are one commit: whoever claims finds both."""
    name, seen = direct
    turn = start_turn(name, "mail a", run=True)
    from hitl_approvals import engine

    monkeypatch.setattr(engine, "run_turn", lambda turn_id: "dropped")
    resume(only(turn).pk, Approve(), input="changed")
    monkeypatch.undo()

    assert AgentTurn.objects.get(pk=turn.pk).status == "ready"
    run_turn(turn.pk)

    assert seen[-1][0] == "changed"


@pytest.mark.concurrency
@pytest.mark.parametrize("options", [{}, {"execute_options": {"n": 1}}])
def test_of_many_that_resume_at_once_one_applies(world, options):
    turn = begin([MAIL])
    row = only(turn)

    outcomes = together(*[lambda: resume(row.pk, Approve(), **options)] * 4)

    assert sorted(type(one).__name__ for one in outcomes) == [
        *["AlreadyResolved"] * 3,
        "Applied",
    ]
    assert len(world.effects) == 1
    assert events(row).count("approved") == 1

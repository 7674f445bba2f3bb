"""start_turn(): once for a key, one turn a thread, never inside a transaction."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.db import transaction

from hitl_approvals import dispatchers, resume, run_turn, services, start_turn
from hitl_approvals.exceptions import (
    AgentNotFound,
    KeyReused,
    PayloadRejected,
    UnsafeContext,
)
from hitl_approvals.models import AgentTurn, PendingInterrupt
from tests.support.agents import call
from tests.support.turns import (
    begin,
    begin_owed,
    decide_and_resume,
    events,
    only,
    rows,
)
from tests.support.turns import resume as resume_turn

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")


def test_a_turn_is_owed_until_somebody_claims_it(world):
    turn = begin_owed([MAIL])

    assert (turn.status, turn.fence, turn.attempts) == ("ready", 0, 0)
    assert (turn.agent, turn.agent_version) == ("scripted", "2")
    assert turn.thread_id == str(turn.pk)
    assert world.model_calls == []
    assert run_turn(turn.pk) == "suspended"
    assert run_turn(turn.pk) == "dropped"
    assert world.model_calls == ["reply 0"]


def test_the_turn_that_is_returned_holds_values_not_expressions(world):
    owed = begin_owed([MAIL])
    run = begin([MAIL])

    assert isinstance(owed.created_at, datetime)
    assert isinstance(owed.next_run_at, datetime)
    assert isinstance(owed.dispatched_at, datetime)
    assert isinstance(run.created_at, datetime)


def test_a_start_is_announced_after_the_commit_and_not_after_a_rollback(
    world, monkeypatch, django_capture_on_commit_callbacks
):
    hints = []
    monkeypatch.setattr(dispatchers, "wake", hints.append)

    with django_capture_on_commit_callbacks(execute=True):
        with transaction.atomic():
            begin_owed([MAIL])
            transaction.set_rollback(True)
        assert AgentTurn.objects.count() == 0
        turn = begin_owed([MAIL])
        assert hints == []

    assert hints == [turn.pk]


def test_a_key_starts_one_turn_however_often_it_is_sent(world):
    first = begin_owed([MAIL], key="order-7")
    second = begin_owed([MAIL], key="order-7")
    third = begin([MAIL], key="order-7")

    assert first.pk == second.pk == third.pk
    assert AgentTurn.objects.count() == 1
    assert world.model_calls == []


def test_a_repeated_start_that_runs_does_not_run_twice(world):
    first = begin([call("note", "n", text="x")], key="order-7")
    second = begin([call("note", "n", text="x")], key="order-7")

    assert first.pk == second.pk
    assert second.status == "completed"
    assert world.names() == ["note"]


@pytest.mark.parametrize(
    "other",
    [
        {"input": ["other"]},
        {"thread_id": "t"},
        {"execute_options": {"a": 1}},
        {"agent": "other"},
        {"requested_by": "somebody"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_key_with_another_request_is_refused(world, other, make_user, make_agent):
    def second_agent(turn, given):
        return None

    options = {"agent": "scripted", "input": [[MAIL]], "key": "order-7", **other}
    if options["agent"] == "other":
        options["agent"] = make_agent(second_agent)
    if "requested_by" in options:
        options["requested_by"] = make_user("somebody")
    first = start_turn("scripted", [[MAIL]], key="order-7")

    with pytest.raises(KeyReused) as refusal:
        start_turn(**options)

    assert refusal.value.context["turn_id"] == str(first.pk)
    assert AgentTurn.objects.count() == 1


def test_turns_without_a_key_are_all_started(world):
    assert begin_owed([MAIL]).pk != begin_owed([MAIL]).pk


def test_an_unknown_agent_is_refused_by_name(world):
    with pytest.raises(AgentNotFound, match=r"'nobody'.*scripted"):
        start_turn("nobody", {})

    assert AgentTurn.objects.count() == 0


@pytest.mark.parametrize("given", [float("nan"), object(), {1: 2}, "x" * 300_000])
def test_an_input_that_is_no_json_is_refused(world, given):
    with pytest.raises(PayloadRejected):
        start_turn("scripted", given)

    assert AgentTurn.objects.count() == 0


@pytest.mark.parametrize("thread", ["x" * 256, "nul \x00", "half \ud800"])
def test_a_thread_that_no_column_holds_is_refused(world, thread):
    with pytest.raises(PayloadRejected):
        start_turn("scripted", [], thread_id=thread)


def test_the_requester_is_kept_by_name(world, make_user):
    user = make_user("rolf")

    turn = begin_owed([MAIL], requested_by=user)

    assert (turn.requested_by_id, turn.requested_by_label) == (user.pk, "rolf")


def test_options_reach_the_agent_as_they_stand(world, make_agent):
    def curious(turn, given):
        return [given, turn.execute_options, turn.thread_id, str(turn.id)]

    turn = start_turn(
        make_agent(curious),
        {"a": 1},
        execute_options={"dry": True},
        thread_id="t",
        run=True,
    )

    assert turn.output == [{"a": 1}, {"dry": True}, "t", str(turn.pk)]


def test_a_busy_thread_blocks_the_next_turn_until_the_first_has_ended(world):
    first = begin([MAIL], thread_id="t")
    second = begin([call("note", "n", text="x")], thread_id="t")
    third = begin_owed([call("note", "n", text="y")], thread_id="t")

    assert (second.status, second.blocked) == ("ready", True)
    assert run_turn(second.pk) == "dropped"
    assert run_turn(third.pk) == "dropped"
    third.refresh_from_db()
    assert (third.status, third.blocked, third.attempts) == ("ready", True, 0)
    assert world.names() == []

    decide_and_resume(first)

    second.refresh_from_db()
    third.refresh_from_db()
    assert (second.blocked, third.blocked) == (False, True)
    assert run_turn(third.pk) == "dropped"
    assert run_turn(second.pk) == "completed"
    third.refresh_from_db()
    assert third.blocked is False
    assert run_turn(third.pk) == "completed"
    assert [args.get("text") for _n, args in world.effects] == [None, "x", "y"]


def test_other_threads_are_not_blocked(world):
    begin([MAIL], thread_id="t")

    assert begin([MAIL], thread_id="u").status == "suspended"
    assert begin([MAIL]).status == "suspended"


def test_a_start_that_runs_is_refused_inside_a_transaction(world):
    with transaction.atomic():
        with pytest.raises(UnsafeContext, match="after the commit"):
            begin([call("note", "n", text="x")])
        owed = begin_owed([MAIL])
        with pytest.raises(UnsafeContext):
            run_turn(owed.pk)
        with pytest.raises(UnsafeContext):
            resume(owed.pk, {"type": "approve"})

    assert world.effects == []
    assert [turn.status for turn in AgentTurn.objects.all()] == ["ready"]


@pytest.mark.django_db(transaction=True)
def test_a_start_that_runs_is_refused_inside_a_real_transaction_too(world):
    with transaction.atomic(), pytest.raises(UnsafeContext):
        begin([call("note", "n", text="x")])

    assert AgentTurn.objects.count() == 0
    assert begin([call("note", "n", text="x")]).status == "completed"


def test_a_process_runs_only_the_agents_and_versions_that_it_knows(world, make_agent):
    def strange(turn, given):
        return "ran"

    old, older = begin_owed([]), begin_owed([])
    AgentTurn.objects.filter(pk=old.pk).update(agent_version="1")
    AgentTurn.objects.filter(pk=older.pk).update(agent_version="0")
    unknown = start_turn(make_agent(strange), None)
    AgentTurn.objects.filter(pk=unknown.pk).update(agent="gone")

    assert run_turn(old.pk) == "completed"
    assert run_turn(older.pk) == "dropped"
    assert run_turn(unknown.pk) == "dropped"
    unknown.refresh_from_db()
    assert (unknown.status, unknown.attempts) == ("ready", 0)


def test_resume_decides_and_runs_what_is_owed(world):
    turn = begin([MAIL, call("pay", "p", order="A", amount=1)])
    first, second = rows(turn)

    half = resume(first.pk, {"type": "approve"})
    whole = resume(second.pk, {"type": "reject", "reason": "no"})

    assert (half.status, half.waiting, half.result) == ("suspended", 1, None)
    assert (whole.status, whole.waiting) == ("completed", 0)
    assert [one["status"] for one in whole.result] == ["ok", "rejected"]
    assert PendingInterrupt.objects.get(pk=first.pk).decided_by_label == "system"


def test_resume_of_what_is_decided_withdrawn_or_unknown_says_so(world):
    turn = begin([MAIL])
    row = only(turn)
    resume(row.pk, {"type": "approve"})
    cancelled = begin([MAIL])
    services.cancel(cancelled.pk, by=None, via="test")

    for pk in (row.pk, only(cancelled).pk, turn.pk):
        answer = resume(pk, {"type": "approve"})
        assert type(answer).__name__ == "AlreadyResolved"
        assert answer.interrupt_id == str(pk)
    with pytest.raises(TypeError):
        resume(row.pk, {"type": "nonsense"})
    assert world.names() == ["mail"]
    assert events(row) == ["raised", "approved", "resolved"]


def test_the_inline_dispatcher_runs_what_a_decision_owes(
    world, settings, django_capture_on_commit_callbacks
):
    turn = begin([MAIL])
    settings.HITL_APPROVALS = {"DISPATCHER": "inline"}

    with django_capture_on_commit_callbacks(execute=True):
        services.decide(only(turn).pk, {"type": "approve"}, by=None, via="test")

    turn.refresh_from_db()
    assert turn.status == "completed"
    assert world.names() == ["mail"]
    assert resume_turn(turn) == "dropped"

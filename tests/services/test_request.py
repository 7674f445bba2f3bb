"""Calls without an agent: asked for by code, decided by people, run by a worker."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from hitl_approvals import (
    Edit,
    Reject,
    request_call,
    resume,
    run_turn,
    services,
    start_turn,
)
from hitl_approvals.exceptions import (
    AgentNotFound,
    KeyReused,
    PayloadRejected,
    ReviewerNotAllowed,
    UnsafeContext,
)
from hitl_approvals.models import AgentTurn, PendingInterrupt
from hitl_approvals.registry import registry
from tests.support import agents
from tests.support.turns import (
    begin,
    decide,
    decide_and_resume,
    events,
    full_events,
    only,
    pass_deadlines,
    pass_execute_by,
    pass_expires_at,
    recover,
    rows,
    settle,
    steps,
)
from tests.support.turns import resume as run_on
from tests.support.world import Crash, acts_then_raises, raises

pytestmark = pytest.mark.django_db


def test_a_gated_call_waits_at_once_and_runs_once_when_approved(world):
    turn = agents.pay.request(order="A", amount=Decimal("2.50"))

    assert (turn.status, turn.undecided, turn.agent) == ("suspended", 1, "hitl.request")
    row = only(turn)
    assert (row.status, row.kind, row.tool_name) == ("pending", "tool_call", "pay")
    assert row.args_text == '{"amount":"2.50","order":"A"}'
    assert row.policy["gated"] is True
    assert events(row) == ["raised"]

    decide_and_resume(turn)

    assert (turn.status, run_turn(turn.pk)) == ("completed", "dropped")
    assert turn.output == {
        "role": "tool",
        "tool_call_id": "",
        "name": "pay",
        "content": '{"effect": 1}',
        "status": "ok",
    }
    assert world.effects == [
        ("pay", {"order": "A", "amount": Decimal("2.50"), "note": ""})
    ]
    assert events(row) == ["raised", "approved", "resolved"]


def test_resume_decides_and_runs_here(world):
    turn = agents.mail.request("a")

    applied = resume(only(turn).pk, {"type": "approve"})

    assert (applied.status, applied.result["status"]) == ("completed", "ok")
    assert world.names() == ["mail"]


def test_an_edit_runs_with_the_other_arguments(world):
    turn = agents.pay.request(order="A", amount=9)

    decide_and_resume(turn, Edit({"order": "A", "amount": 3}, "less"))

    assert world.effects[0][1]["amount"] == Decimal(3)
    assert turn.output["status"] == "ok"


def test_a_refusal_runs_nothing(world):
    turn = agents.mail.request(to="a")

    decide_and_resume(turn, Reject("no need"))

    assert (turn.status, turn.output["status"]) == ("completed", "rejected")
    assert "no need" in turn.output["content"]
    assert world.effects == []


def test_nobody_decides_in_time(world):
    turn = agents.ship.request(when=datetime.fromisoformat("2026-01-01T00:00:00+00:00"))
    row = only(turn)
    assert row.expires_at - row.requested_at == timedelta(hours=1)
    pass_expires_at(row)

    assert services.sweep().expired == 1
    run_on(turn)

    assert (turn.status, turn.output["status"]) == ("completed", "expired")
    assert world.effects == []


def test_cancelling_withdraws_it(world):
    turn = agents.mail.request(to="a")

    services.cancel(turn.pk, by=None, via="test")

    assert only(turn).status == "cancelled"
    assert run_turn(turn.pk) == "dropped"
    assert world.effects == []


def test_an_approval_that_is_not_used_in_time_comes_back(world):
    turn = agents.mail.request(to="a")
    decide(only(turn))
    pass_execute_by(only(turn))

    assert services.sweep().lapsed == 1
    assert (only(turn).status, only(turn).generation) == ("pending", 2)
    decide_and_resume(turn)
    assert world.names() == ["mail"]


def test_a_free_call_is_owed_to_a_worker(world):
    turn = agents.note.request(text="x")

    assert (turn.status, rows(turn), world.effects) == ("ready", [], [])
    assert run_turn(turn.pk) == "completed"
    assert world.names() == ["note"]


def test_the_policy_is_asked_once_and_frozen(world):
    world.policy = lambda call: ["big"] if call.args["amount"] > 5 else False

    free = agents.judged.request(amount=1)
    gated = agents.judged.request(amount=9)

    assert (free.status, gated.status) == ("ready", "suspended")
    assert only(gated).tags == ["own", "big"]
    asked = world.policy_calls[-1]
    assert (asked.agent, asked.turn_id) == ("hitl.request", str(gated.pk))
    world.policy = lambda call: False
    decide_and_resume(gated)
    assert [one.args["amount"] for one in world.policy_calls] == [1, 9]
    assert world.names() == ["judged"]


@pytest.mark.parametrize(
    "args", [{"order": "A", "amount": "much"}, {"order": "A", "amount": float("nan")}]
)
def test_arguments_that_do_not_fit_are_refused_at_once(world, args):
    with pytest.raises(PayloadRejected):
        agents.pay.request(**args)
    with pytest.raises(TypeError):
        agents.pay.request(order="A")
    assert AgentTurn.objects.count() == PendingInterrupt.objects.count() == 0


def test_what_is_rolled_back_was_never_asked(world):
    with transaction.atomic():
        agents.mail.request(to="a")
        agents.note.request(text="x")
        assert AgentTurn.objects.count() == 2
        transaction.set_rollback(True)

    assert AgentTurn.objects.count() == PendingInterrupt.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_worker_is_woken_after_the_commit_only(world, monkeypatch):
    woken = []
    monkeypatch.setattr("hitl_approvals.dispatchers.wake", woken.append)

    with transaction.atomic():
        turn = agents.note.request(text="x")
        assert woken == []

    assert woken == [turn.pk]


def test_a_crash_in_the_call_is_the_ordinary_one(world):
    world.plan("mail", acts_then_raises(Crash()))
    turn = agents.mail.request(to="a")
    with pytest.raises(Crash):
        decide_and_resume(turn)

    recover(turn)

    assert (turn.status, only(turn).status) == ("suspended", "in_doubt")
    pass_deadlines(turn)
    settle(only(turn), "happened", result={"effect": 1})
    run_on(turn)
    assert (turn.status, turn.output["status"]) == ("completed", "ok")
    assert world.names() == ["mail"]


def test_an_idempotent_call_is_repeated_with_its_key(world):
    world.plan("transfer", acts_then_raises(Crash()))
    turn = agents.transfer.request(to="a")
    with pytest.raises(Crash):
        decide_and_resume(turn)

    recover(turn)

    assert turn.status == "completed"
    assert len(world.keys) == 2
    assert len(set(world.keys)) == 1


def test_a_transactional_call_and_its_record_are_one(world):
    turn = agents.book.request(name="x")

    decide_and_resume(turn)

    assert steps(turn)[0].status == "succeeded"
    assert world.names() == ["book"]


def test_a_clean_failure_is_told(world):
    world.plan("pay", raises(agents.CardDeclined("no funds")))
    turn = agents.pay.request(order="A", amount=1)

    decide_and_resume(turn)

    assert (turn.status, turn.output["status"]) == ("completed", "error")
    assert only(turn).outcome_status == "failed"


def test_the_same_key_finds_the_request_that_is_there(world):
    first = request_call(agents.mail, {"to": "a"}, key="k")

    assert request_call(agents.mail, {"to": "a"}, key="k") == first
    with pytest.raises(KeyReused):
        request_call(agents.mail, {"to": "b"}, key="k")
    with pytest.raises(KeyReused):
        request_call(agents.read_secret, {"name": "a"}, key="k")
    assert PendingInterrupt.objects.count() == 1


def test_options_reach_the_reviewer(world, make_user):
    rita = make_user("rita", "decide_pendinginterrupt")

    turn = request_call(
        agents.mail,
        {"to": "a"},
        requested_by=rita,
        reason="She asked for it.",
        thread_id="chat",
        expires_in=timedelta(minutes=5),
        via="admin",
    )

    row = only(turn)
    assert (turn.requested_by_label, turn.thread_id) == ("rita", "chat")
    assert (row.thread_id, row.context["asked"]) == ("chat", "She asked for it.")
    assert row.expires_at - row.requested_at == timedelta(minutes=5)
    (event,) = full_events(row)
    assert (event.actor, event.via) == ("rita", "admin")
    with pytest.raises(ReviewerNotAllowed):
        decide(row, by=rita)


def test_hidden_arguments_are_in_neither_input_nor_context(world):
    turn = agents.mail.request(to="secret@example.com")

    assert "secret" not in str(turn.input)
    assert "secret" not in str(only(turn).context)


def test_a_busy_thread_is_waited_for_once_it_is_decided(world):
    running = begin([agents.call("mail", "m", to="a")], thread_id="chat")
    turn = request_call(agents.pay, {"order": "A", "amount": 1}, thread_id="chat")

    assert (turn.status, turn.active_thread) == ("suspended", None)
    decide_and_resume(turn)
    assert (turn.status, turn.blocked) == ("ready", True)
    decide_and_resume(running)
    run_on(turn)
    assert world.names() == ["mail", "pay"]


def test_a_request_holds_its_thread_like_any_turn_that_waits(world):
    turn = request_call(agents.mail, {"to": "a"}, thread_id="chat")

    later = start_turn("scripted", [], thread_id="chat")

    assert turn.active_thread is not None
    assert later.blocked
    decide_and_resume(turn)
    later.refresh_from_db()
    assert not later.blocked


def test_a_process_without_the_tool_runs_nothing(world, monkeypatch):
    turn = agents.mail.request(to="a")
    decide(only(turn))
    with monkeypatch.context() as patch:
        patch.delitem(registry.tools, "mail")
        run_on(turn)

    assert (turn.status, world.effects) == ("ready", [])
    assert "No tool is called 'mail'" in turn.last_error
    run_on(turn)
    assert (turn.status, world.names()) == ("completed", ["mail"])


def test_options_that_were_changed_run_nothing(world):
    turn = agents.mail.request(to="a")
    decide(only(turn))
    for options in ({"tool": "mail", "args": {"to": "b"}}, {"depth": 1}):
        AgentTurn.objects.filter(pk=turn.pk).update(execute_options=options)
        run_on(turn)
        assert turn.status == "needs_attention"
        services.retry(turn.pk, by=None, via="test")

    assert world.effects == []


def test_inside_a_turn_it_has_to_be_idempotent(world, make_agent):
    def asks(turn, given):
        with pytest.raises(UnsafeContext):
            agents.mail.request(to="a")
        made = request_call(agents.mail, {"to": "a"}, key=f"{turn.id}-mail")
        turn.interrupt("on?")
        return str(made.pk)

    turn = begin(agent=make_agent(asks))
    decide_and_resume(turn, {"type": "respond", "value": 1})

    assert turn.status == "completed"
    assert AgentTurn.objects.filter(agent="hitl.request").count() == 1


def test_it_can_be_forked(world):
    turn = agents.mail.request(to="a")
    decide_and_resume(turn)

    forked = services.fork(turn.pk)
    decide_and_resume(forked, Reject("once is enough"))

    assert forked.output["status"] == "rejected"
    assert world.names() == ["mail"]


def test_the_built_in_agent_is_started_by_no_other_door(world):
    with pytest.raises(AgentNotFound) as refusal:
        start_turn("hitl.request", {"tool": "note"}, execute_options={})

    assert "hitl.request" not in refusal.value.detail.partition("Registered")[2]


@pytest.mark.django_db(transaction=True)
def test_async_code_asks_too(world):
    turn = async_to_sync(agents.mail.arequest)(to="a")

    decide_and_resume(turn)
    assert world.names() == ["mail"]

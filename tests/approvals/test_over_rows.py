"""The Django app as one durable handler of the gate: asked in the queue, resumed here."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connections, transaction

from hitl_approvals import (
    AlreadyResolved,
    ApprovalRejected,
    Approve,
    DjangoInterruptStore,
    Edit,
    InterruptSuspended,
    MemoryInterruptStore,
    Reject,
    approval,
    aresume,
    resume,
    services,
)
from hitl_approvals.api.redaction import shown_context
from hitl_approvals.exceptions import (
    ReviewerNotAllowed,
    TransitionNotAllowed,
    UnsafeContext,
)
from hitl_approvals.models import InterruptEvent, PendingInterrupt
from tests.approvals.test_gate import wire
from tests.approvals.test_resume import Bank, together
from tests.workspace import ROOT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]


@pytest.fixture
def bank():
    return Bank(DjangoInterruptStore())


def row_of(interrupt_id):
    return PendingInterrupt.objects.get(pk=interrupt_id)


def decide(interrupt_id, decision):
    """Decide as the admin and the API do."""
    return services.decide(interrupt_id, decision, by=None, via="admin")


def events(interrupt_id):
    found = InterruptEvent.objects.filter(subject_id=interrupt_id).order_by("sequence")
    return [event.type for event in found]


def test_a_gated_call_waits_in_the_review_queue(bank):
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))

    row = row_of(waiting)
    assert (row.status, row.turn, row.tool_name) == ("pending", None, "pay")
    assert row.args == {"to": "ann"}
    assert row.queue.slug == "default"


def test_what_was_decided_in_the_admin_is_picked_up(bank):
    def agent(prompt):
        return bank.pay("ann")

    waiting = bank.suspend(agent)
    decide(waiting, Edit({"to": "ann", "amount": 5}))

    outcome = resume(waiting, None, store=bank.store, agent=agent)

    assert outcome.decision == Edit({"to": "ann", "amount": 5})
    assert (outcome.result, outcome.used) == ("paid ann", True)
    assert bank.paid == [("ann", 5)]
    row = row_of(waiting)
    assert (row.status, row.outcome_status, row.outcome) == (
        "resolved",
        "succeeded",
        "paid ann",
    )
    assert events(waiting) == ["raised", "edited", "consumed", "resolved"]


def test_before_anybody_decided_there_is_nothing_to_pick_up(bank):
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))

    with pytest.raises(TransitionNotAllowed, match="Nobody has decided"):
        resume(waiting, None, store=bank.store, agent=lambda prompt: bank.pay("ann"))

    assert row_of(waiting).status == "pending"


def test_every_decided_request_can_be_found_and_resumed(bank):
    """What a worker does that comes back: nothing decided is forgotten."""

    def agent(name):
        return bank.pay(name)

    ids = [bank.suspend(agent, name) for name in ("ann", "ben", "cid")]
    decide(ids[0], Approve())
    decide(ids[2], Approve())

    for record in bank.store.list():
        if record.status == "decided":
            resume(record.interrupt_id, None, store=bank.store, agent=agent)

    assert bank.paid == [("ann", 1), ("cid", 1)]
    assert [one.interrupt_id for one in bank.store.list()] == [ids[1]]


def test_a_rejection_in_the_admin_reaches_the_agent(bank):
    def agent(prompt):
        return bank.pay("ann")

    waiting = bank.suspend(agent)
    decide(waiting, Reject("not her"))

    outcome = resume(waiting, None, store=bank.store, agent=agent)

    assert isinstance(outcome.error, ApprovalRejected)
    assert outcome.error.reason == "not her"
    assert (row_of(waiting).status, bank.paid) == ("resolved", [])


def test_a_decision_given_to_resume_is_recorded_before_it_is_applied(bank, make_user):
    def agent(prompt):
        assert row_of(waiting).decision == "approve"
        return bank.pay("ann")

    waiting = bank.suspend(lambda prompt: bank.pay("ann"))
    nobody = make_user("nobody", "view_pendinginterrupt")

    with pytest.raises(ReviewerNotAllowed):
        resume(waiting, Approve(), store=bank.store, agent=agent, by=nobody)
    assert row_of(waiting).status == "pending"

    reviewer = make_user("rita", "view_pendinginterrupt", "decide_pendinginterrupt")
    outcome = resume(
        waiting, Approve(), store=bank.store, agent=agent, by=reviewer, via="slack"
    )

    assert outcome.result == "paid ann"
    row = row_of(waiting)
    assert (row.decided_by, row.decided_via) == (reviewer, "slack")


def test_who_decides_second_is_told_that_it_is_resolved(bank):
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))
    decide(waiting, Reject("no"))

    outcome = resume(
        waiting, Approve(), store=bank.store, agent=lambda prompt: bank.pay("ann")
    )

    assert outcome == AlreadyResolved(waiting)
    assert row_of(waiting).status == "decided"
    assert bank.paid == []


def test_who_died_between_deciding_and_claiming_comes_again(bank):
    def agent(prompt):
        return bank.pay("ann")

    waiting = bank.suspend(agent)
    bank.store.decide(waiting, Approve())

    outcome = resume(waiting, Approve(), store=bank.store, agent=agent)

    assert outcome.result == "paid ann"


def test_an_exception_of_the_tool_leaves_its_fate_to_a_person(bank):
    def pay(to: str) -> str:
        bank.paid.append(to)
        raise ConnectionError("timed out")

    guarded = bank.gate.wrap(pay)
    waiting = bank.suspend(lambda prompt: guarded("ann"))

    outcome = resume(
        waiting, Approve(), store=bank.store, agent=lambda prompt: guarded("ann")
    )

    assert isinstance(outcome.error, ConnectionError)
    assert row_of(waiting).status == "in_doubt"


def test_a_call_that_was_not_asked_for_again_did_not_happen(bank):
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))

    outcome = resume(waiting, Approve(), store=bank.store, agent=lambda prompt: "no")

    assert outcome.used is False
    row = row_of(waiting)
    assert (row.status, row.outcome_status) == ("resolved", "failed")
    assert bank.paid == []


def test_alone_the_claim_is_handed_over_and_its_outcome_reported(bank):
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))
    decide(waiting, Approve())

    outcome = resume(waiting, None, store=bank.store)

    assert (outcome.status, outcome.decision) == ("claimed", Approve())
    assert outcome.record.request.args == {"to": "ann"}
    assert row_of(waiting).outcome_due is not None
    bank.store.report(
        waiting, key=outcome.record.key, status="succeeded", outcome={"paid": True}
    )
    assert row_of(waiting).status == "resolved"


def test_a_crash_after_the_claim_never_loses_the_approval(bank):
    """The seed deletes first, and forgets; here the row says that somebody took it."""
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))
    decide(waiting, Approve())
    connections.close_all()
    program = f"""
import os, signal
os.environ["DJANGO_SETTINGS_MODULE"] = {settings.SETTINGS_MODULE!r}
import django
django.setup()
from django.db import connections
from hitl_approvals import DjangoInterruptStore, resume
def agent(prompt):
    os.kill(os.getpid(), signal.SIGKILL)
resume({waiting!r}, None, store=DjangoInterruptStore(), agent=agent)
"""

    died = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert died.returncode == -9, died.stderr
    row = row_of(waiting)
    assert (row.status, row.decision) == ("decided", "approve")
    assert row.consumed_at is not None
    assert [one.status for one in bank.store.list()] == ["taken"]
    PendingInterrupt.objects.filter(pk=waiting).update(outcome_due=row.consumed_at)
    services.sweep()
    assert row_of(waiting).status == "in_doubt"


def test_of_many_that_resume_at_once_one_applies(bank):
    def agent(prompt):
        return bank.pay("ann")

    def verb():
        try:
            return resume(waiting, None, store=DjangoInterruptStore(), agent=agent)
        finally:
            connections.close_all()

    waiting = bank.suspend(agent)
    decide(waiting, Approve())

    outcomes = together(*[verb] * 4)

    assert sorted(type(one).__name__ for one in outcomes) == [
        *["AlreadyResolved"] * 3,
        "Applied",
    ]
    assert bank.paid == [("ann", 1)]
    assert events(waiting).count("consumed") == 1


def test_a_second_question_replays_the_first_call(bank):
    def agent(prompt):
        return [bank.pay("ann"), bank.pay("ben")]

    first = bank.suspend(agent)
    decide(first, Approve())
    second = resume(first, None, store=bank.store, agent=agent)
    decide(second.next_interrupt_id, Approve())
    last = resume(second.next_interrupt_id, None, store=bank.store, agent=agent)

    assert last.result == ["paid ann", "paid ben"]
    assert bank.paid == [("ann", 1), ("ben", 1)]


def test_awaited_it_does_the_same(bank):
    pay = bank.make_pay()

    async def agent(prompt):
        return (await bank.gate.ainvoke({"args": {"to": "ann"}}, pay)).unwrap()

    async def play():
        try:
            waiting = await bank.gate.aexecute(agent, "go")
            assert waiting.suspended
            return await aresume(
                waiting.interrupt_id, Approve(), store=bank.store, agent=agent
            )
        finally:
            await sync_to_async(connections.close_all)()

    outcome = asyncio.run(play())

    assert (outcome.result, bank.paid) == ("paid ann", [("ann", 1)])
    assert row_of(outcome.interrupt_id).status == "resolved"


def test_it_refuses_to_run_inside_a_transaction(bank):
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))

    with transaction.atomic(), pytest.raises(UnsafeContext):
        resume(waiting, Approve(), store=bank.store, agent=lambda prompt: "x")

    assert row_of(waiting).status == "pending"


def test_the_store_says_no_to_none_only_where_it_records_nothing():
    memory = Bank(MemoryInterruptStore())
    waiting = memory.suspend(lambda prompt: memory.pay("ann"))

    with pytest.raises(TypeError, match="MemoryInterruptStore records none"):
        resume(waiting, None, store=memory.store)


def test_one_gate_serves_the_queue_beside_a_handler(bank):
    """A handler that notifies, and the app that keeps: the gate saves what it raised."""
    told = []

    def notify(request):
        told.append(request.tool_name)
        raise InterruptSuspended(request.interrupt_id)

    gate = approval(handler=notify, store=bank.store)
    guarded = gate.wrap(bank.make_pay())

    waiting = gate.execute(lambda prompt: guarded("ann"), "go")

    assert told == ["pay"]
    assert row_of(waiting.interrupt_id).status == "pending"


def test_what_earlier_calls_returned_is_not_shown_over_rest(bank):
    def agent(prompt):
        return [bank.pay("ann"), bank.pay("ben")]

    first = bank.suspend(agent)
    second = resume(first, Approve(), store=bank.store, agent=agent)
    row = row_of(second.next_interrupt_id)

    shown = shown_context(row.context, row)

    assert row.context["request"]["journal"][0]["value"] == "paid ann"
    assert "journal" not in shown["request"]
    assert bank.store.load(str(row.pk)).request.journal[0]["value"] == "paid ann"


def test_what_a_tool_fixes_and_hides_stands_on_the_row(bank):
    outcome = bank.gate.execute(
        lambda prompt: bank.gate.invoke({"args": {"to": "ann", "pin": "1"}}, wire), "go"
    )

    policy = row_of(outcome.interrupt_id).policy

    assert (policy["fixed"], policy["redact"]) == (["to"], ["pin"])

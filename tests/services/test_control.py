"""Cancelling and retrying whole turns."""

from __future__ import annotations

import uuid

import pytest

from hitl_approvals import TurnFailed, dispatchers, run_turn, services
from hitl_approvals.exceptions import (
    ReviewerNotAllowed,
    TransitionNotAllowed,
    TurnNotFound,
)
from hitl_approvals.models import AgentTurn
from tests.support.agents import call
from tests.support.turns import (
    begin,
    begin_owed,
    decide,
    decide_and_resume,
    events,
    full_events,
    only,
    pass_deadlines,
    recover,
    resume,
    rows,
    step_statuses,
)
from tests.support.world import Crash, acts_then_raises

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
PAY = call("pay", "p", order="A", amount=1)


def cancel(turn, **options):
    return services.cancel(turn.pk, **{"by": None, "via": "test", **options})


def retry(turn, **options):
    return services.retry(turn.pk, **{"by": None, "via": "test", **options})


def stuck(make_agent, failures):
    def broken(turn, given):
        turn.call_tools([MAIL])
        if failures:
            raise failures.pop()
        return "fine"

    return make_agent(broken)


def test_cancelling_withdraws_what_is_pending_and_what_is_decided(world, reviewer):
    turn = begin([MAIL, PAY])
    decided, pending = rows(turn)
    decide(decided)

    cancelled = cancel(turn, reason="the customer left")

    assert (cancelled.status, cancelled.undecided) == ("cancelled", 0)
    assert cancelled.finished_at is not None
    assert cancelled.active_thread is None
    assert [(row.status, row.outcome_status) for row in rows(turn)] == [
        ("cancelled", "withdrawn")
    ] * 2
    assert events(decided) == ["raised", "approved", "cancelled"]
    assert events(pending) == ["raised", "cancelled"]
    assert rows(turn)[1].decided_at is not None
    (event,) = full_events(turn)
    assert (event.type, event.detail) == (
        "turn_cancelled",
        {"reason": "the customer left"},
    )
    assert run_turn(turn.pk) == "dropped"
    assert world.effects == []


def test_cancelling_spares_a_call_that_may_be_under_way(world):
    world.plan("mail", acts_then_raises(Crash()))
    turn = begin([MAIL, PAY])
    with pytest.raises(Crash):
        decide_and_resume(turn)

    cancel(turn)

    mailed, paid = rows(turn)
    assert (mailed.status, paid.status) == ("decided", "cancelled")
    assert step_statuses(turn) == ["started"]
    assert events(mailed) == ["raised", "approved"]

    pass_deadlines(turn)
    assert services.sweep().doubted == 1
    assert rows(turn)[0].status == "in_doubt"


def test_cancelling_leaves_doubts_in_doubt(world):
    world.plan("mail", acts_then_raises(TimeoutError("read")))
    turn = begin([MAIL, PAY])
    decide_and_resume(turn)

    cancel(turn)

    assert [row.status for row in rows(turn)] == ["in_doubt", "resolved"]
    services.settle(rows(turn)[0].pk, "give_up", by=None, via="test")


@pytest.mark.parametrize("state", ["ready", "suspended", "needs_attention"])
def test_every_open_turn_can_be_cancelled(world, make_agent, settings, state):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 1}
    if state == "ready":
        turn = begin_owed([MAIL])
    elif state == "suspended":
        turn = begin([MAIL])
    else:
        turn = begin(agent=stuck(make_agent, [ValueError("no")]))
        decide_and_resume(turn)
    assert turn.status == state

    assert cancel(turn).status == "cancelled"
    assert events(turn)[-1] == "turn_cancelled"


@pytest.mark.parametrize("end", ["completed", "cancelled"])
def test_a_turn_that_is_over_can_be_neither_cancelled_nor_retried(world, end):
    turn = begin([MAIL])
    if end == "completed":
        decide_and_resume(turn)
    else:
        cancel(turn)
    before = events(turn)

    with pytest.raises(
        TransitionNotAllowed, match=f"{end} now; it cannot be cancelled"
    ):
        cancel(turn)
    with pytest.raises(TransitionNotAllowed, match=f"{end} now; there is nothing to"):
        retry(turn)
    assert events(turn) == before


@pytest.mark.parametrize("unknown", [uuid.uuid4(), "no uuid"])
def test_a_turn_that_is_not_there_is_not_found(world, unknown):
    for verb in (services.cancel, services.retry):
        with pytest.raises(TurnNotFound):
            verb(unknown, by=None, via="test")


def test_cancelling_unblocks_the_next_turn_of_the_thread(world):
    first = begin([MAIL], thread_id="t")
    second = begin([call("note", "n", text="x")], thread_id="t")

    cancel(first)

    assert resume(second) == "completed"


def test_who_may_cancel(world, make_user):
    requester = make_user("rolf")
    boss = make_user("boss", "administer_pendinginterrupt")
    viewer = make_user("vera", "view_agentturn")

    with pytest.raises(TurnNotFound):
        cancel(begin([MAIL]), by=requester)
    with pytest.raises(ReviewerNotAllowed, match="Can administer"):
        cancel(begin([MAIL]), by=viewer)
    assert cancel(begin([MAIL], requested_by=requester), by=requester).pk
    turn = begin([MAIL])
    cancel(turn, by=boss, via="admin")

    assert (full_events(turn)[0].actor, full_events(turn)[0].via) == ("boss", "admin")


def test_a_retry_keeps_the_journal_and_the_decisions(world, make_agent, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 1}
    turn = begin(agent=stuck(make_agent, [ValueError("no")]))
    decide_and_resume(turn)
    assert turn.status == "needs_attention"

    retried = retry(turn)

    assert (retried.status, retried.attempts, retried.undecided) == ("ready", 0, 0)
    assert resume(turn) == "completed"
    assert world.names() == ["mail"]
    assert events(turn) == ["turn_needs_attention", "turn_retried", "turn_completed"]
    assert events(only(turn)) == ["raised", "approved", "resolved"]


def test_a_retry_is_announced_after_the_commit(
    world, make_agent, settings, monkeypatch, django_capture_on_commit_callbacks
):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 1}
    turn = begin(agent=stuck(make_agent, [ValueError("no")]))
    decide_and_resume(turn)
    hints = []
    monkeypatch.setattr(dispatchers, "wake", hints.append)

    with django_capture_on_commit_callbacks(execute=True):
        retry(turn)

    assert hints == [turn.pk]


def test_a_failed_turn_may_be_retried(world, make_agent):
    failures = [TurnFailed("no")]

    def flaky(turn, given):
        if failures:
            raise failures.pop()
        return "fine"

    turn = begin(agent=make_agent(flaky))
    assert turn.status == "failed"

    retried = retry(turn)

    assert (retried.status, retried.error, retried.finished_at) == ("ready", "", None)
    assert resume(turn) == "completed"
    assert events(turn) == ["turn_failed", "turn_retried", "turn_completed"]


def test_a_retry_waits_for_the_doubts_that_are_open(world, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 1}
    world.plan("mail", acts_then_raises(Crash()))
    turn = begin([MAIL])
    with pytest.raises(Crash):
        decide_and_resume(turn)
    recover(turn)
    pass_deadlines(turn)
    services.sweep()

    retried = retry(turn)

    assert (retried.status, retried.undecided) == ("suspended", 1)
    assert events(turn) == ["turn_needs_attention", "turn_retried"]


def test_running_turns_are_not_retried(world, make_agent):
    refused = []

    def curious(turn, given):
        with pytest.raises(TransitionNotAllowed):
            services.retry(turn.id, by=None, via="test")
        refused.append(True)

    begin(agent=make_agent(curious))

    assert refused == [True]
    assert AgentTurn.objects.get().status == "completed"

"""What time alone moves: leases, limits, hints and threads."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.db import InterfaceError, OperationalError

from hitl_approvals import dispatchers, run_turn, services
from hitl_approvals.models import AgentTurn, DbNow, PendingInterrupt, db_now_plus
from hitl_approvals.services import sweeper, turns
from tests.support.agents import call
from tests.support.turns import (
    PAST,
    begin,
    begin_owed,
    decide,
    decide_and_resume,
    events,
    full_events,
    go_silent,
    only,
    pass_expires_at,
    recover,
    resume,
    rows,
)
from tests.support.world import Crash, raises

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
NOTE = call("note", "n", text="x")


@pytest.fixture
def hints(monkeypatch, settings):
    """Announce with Celery, to a list instead of a broker."""
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "DISPATCHER": "celery"}
    sent = []

    def wake(turn_id):
        sent.append(turn_id)
        return True

    monkeypatch.setattr(dispatchers, "wake", wake)
    return sent


def crashed(world):
    world.plan("read", raises(Crash()))
    with pytest.raises(Crash):
        begin([call("read", "r", name="x")])
    return AgentTurn.objects.get()


def ago(turn, seconds, *columns):
    moment = db_now_plus(timedelta(seconds=-seconds))
    AgentTurn.objects.filter(pk=turn.pk).update(**dict.fromkeys(columns, moment))


def test_a_pass_over_nothing_moves_nothing(world, db):
    begin([MAIL])

    assert set(services.sweep().as_dict().values()) == {0}


def test_a_silent_worker_loses_its_turn_and_the_turn_is_owed_again(world):
    turn = crashed(world)
    fence = turn.fence
    assert services.sweep().revoked == 0

    AgentTurn.objects.filter(pk=turn.pk).update(lease_until=PAST)
    assert services.sweep().revoked == 1
    assert services.sweep().revoked == 0

    turn.refresh_from_db()
    assert (turn.status, turn.fence, turn.lease_until) == ("ready", fence + 1, None)
    assert turn.last_error == "The worker went silent in attempt 1."
    assert turn.dispatched_at is None
    found = AgentTurn.objects.annotate(now=DbNow()).get(pk=turn.pk)
    assert found.next_run_at > found.now
    assert resume(turn) == "completed"
    assert world.names() == ["read"]


def test_a_worker_that_beats_keeps_its_turn(world, make_agent):
    seen = []

    def slow(turn, given):
        AgentTurn.objects.filter(pk=turn.id).update(lease_until=PAST)
        fence = AgentTurn.objects.get(pk=turn.id).fence
        seen.append(turns.extend_lease(turn.id, fence))
        seen.append(turns.extend_lease(turn.id, fence - 1))
        seen.append(services.sweep().revoked)

    turn = begin(agent=make_agent(slow))

    assert seen == [True, False, 0]
    assert turn.status == "completed"


def test_a_turn_that_kills_every_worker_ends_with_a_person(world, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 2}
    turn = crashed(world)
    world.plan("read", raises(Crash()))
    with pytest.raises(Crash):
        recover(turn)

    go_silent(turn)

    assert turn.status == "needs_attention"
    assert turn.last_error == "The worker went silent in attempt 2."
    assert events(turn) == ["turn_needs_attention"]
    assert full_events(turn)[0].detail == {"error": turn.last_error}
    assert resume(turn) == "dropped"
    services.retry(turn.pk, by=None, via="test")
    assert resume(turn) == "completed"


def test_only_what_is_due_expires_and_only_once(world):
    due, later = begin([MAIL]), begin([call("ship", "s")])
    pass_expires_at(only(due))

    assert services.sweep().expired == 1
    assert services.sweep().expired == 0

    assert only(due).decision == "expire"
    assert only(later).status == "pending"
    assert events(only(due)) == ["raised", "expired"]
    assert full_events(only(due))[-1].actor == "system"


def test_an_expiry_counts_as_one_of_the_decisions_that_a_turn_waits_for(world):
    turn = begin([MAIL, call("mail", "k", to="b")])
    first, second = rows(turn)
    pass_expires_at(second)

    services.sweep()
    turn.refresh_from_db()
    assert (turn.status, turn.undecided) == ("suspended", 1)
    decide(first)

    assert resume(turn) == "completed"
    assert world.effects == [("mail", {"to": "a"})]


def test_a_tools_own_time_to_decide_wins_over_the_sites(world, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "EXPIRES_IN": 60}
    turn = begin([MAIL, call("ship", "s")])

    mail, ship = PendingInterrupt.objects.annotate(now=DbNow()).order_by("position")
    assert 55 < (mail.expires_at - mail.now).total_seconds() <= 60
    assert 3590 < (ship.expires_at - ship.now).total_seconds() <= 3600
    assert turn.undecided == 2


def test_an_owed_turn_is_announced_again_in_doubling_steps(world, hints):
    turn = begin_owed([NOTE])
    assert services.sweep().announced == 0

    for hint, wait in enumerate([15, 30, 60, 120, 240, 480, 600, 600]):
        ago(turn, wait - 5, "dispatched_at")
        assert services.sweep().announced == 0, wait
        ago(turn, wait + 5, "dispatched_at")
        assert services.sweep().announced == 1, wait
        assert AgentTurn.objects.get(pk=turn.pk).hints == hint + 1

    assert hints == [turn.pk] * 8


def test_a_turn_that_is_not_due_blocked_or_suspended_is_not_announced(world, hints):
    first = begin([MAIL], thread_id="t")
    blocked = begin([NOTE], thread_id="t")
    backing_off = begin_owed([NOTE])
    AgentTurn.objects.filter(pk=backing_off.pk).update(
        next_run_at=db_now_plus(timedelta(hours=1)), dispatched_at=None
    )
    ago(blocked, 99, "dispatched_at")
    ago(first, 99, "dispatched_at")

    assert services.sweep().announced == 0
    assert hints == []


def test_a_pass_waits_only_once_for_a_broker_that_is_away(world, hints, monkeypatch):
    owed = [begin_owed([MAIL]) for _ in range(3)]
    for turn in owed:
        ago(turn, 60, "dispatched_at")
    hints.clear()
    tried = []
    monkeypatch.setattr(dispatchers, "wake", lambda pk: tried.append(pk) or False)

    assert [services.sweep().announced for _ in range(4)] == [0, 0, 0, 0]

    # One a pass, and not the same one again before its time.
    assert sorted(tried) == sorted(turn.pk for turn in owed)
    assert {turn.hints for turn in AgentTurn.objects.all()} == {0}


def test_a_claim_starts_the_counting_of_hints_anew(world, hints):
    turn = begin_owed([NOTE])
    AgentTurn.objects.filter(pk=turn.pk).update(hints=4)

    run_turn(turn.pk)

    turn.refresh_from_db()
    assert (turn.status, turn.hints) == ("completed", 0)


def test_a_turn_that_no_worker_takes_is_shown_to_a_person(world, hints):
    turn = begin_owed([NOTE])
    AgentTurn.objects.filter(pk=turn.pk).update(agent_version="99", hints=6)
    ago(turn, 1000, "next_run_at")

    assert services.sweep().unclaimed == 1

    turn.refresh_from_db()
    assert turn.status == "needs_attention"
    assert "`scripted` version 99" in turn.last_error
    assert events(turn) == ["turn_needs_attention"]
    assert services.sweep().unclaimed == 0


def test_a_turn_that_was_never_announced_is_not_called_unclaimed(world, monkeypatch):
    """With the broker away nobody could have taken it."""
    monkeypatch.setattr(dispatchers, "wake", lambda turn_id: False)
    turn = begin_owed([NOTE])
    ago(turn, 100_000, "next_run_at", "dispatched_at")

    services.sweep()

    turn.refresh_from_db()
    assert (turn.status, turn.hints) == ("ready", 0)
    assert run_turn(turn.pk) == "completed"


def test_a_blocked_turn_whose_thread_nobody_holds_is_unblocked(world):
    """The holder may have ended between a failed claim and the flag it wrote."""
    first = begin_owed([NOTE], thread_id="t")
    second = begin_owed([NOTE], thread_id="t")
    AgentTurn.objects.all().update(blocked=True)

    assert services.sweep().unblocked == 1

    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.blocked, second.blocked) == (False, True)
    assert run_turn(first.pk) == "completed"
    second.refresh_from_db()
    assert second.blocked is False


def test_a_blocked_turn_whose_thread_is_held_stays_blocked(world):
    begin([MAIL], thread_id="t")
    second = begin([NOTE], thread_id="t")

    assert services.sweep().unblocked == 0
    second.refresh_from_db()
    assert second.blocked is True


def test_a_sweeper_lets_nobody_pass_a_first_turn_that_waits_for_a_worker(world):
    """No worker was up when both came, so nobody holds the thread yet."""
    first = begin_owed([NOTE], thread_id="t")
    second = begin_owed([NOTE], thread_id="t")

    assert services.sweep().unblocked == 0

    assert run_turn(second.pk) == "dropped"
    assert run_turn(first.pk) == "completed"
    assert run_turn(second.pk) == "completed"


def test_a_sweeper_lets_nobody_pass_the_turn_that_was_just_let_in(world):
    begun = [begin_owed([NOTE], thread_id="t") for _ in range(3)]

    assert run_turn(begun[0].pk) == "completed"
    assert services.sweep().unblocked == 0

    assert [run_turn(turn.pk) for turn in begun[:0:-1]] == ["dropped", "completed"]


@pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
def test_one_row_that_cannot_be_moved_does_not_hold_up_the_others(
    world, monkeypatch, caplog, kind
):
    good, bad = begin([MAIL]), begin([MAIL])
    for turn in (good, bad):
        pass_expires_at(only(turn))
    stuck = only(bad).pk
    real = sweeper.decisions.expire

    def expire(pk):
        if pk == stuck:
            raise kind("locked")
        return real(pk)

    monkeypatch.setattr(sweeper.decisions, "expire", expire)
    with caplog.at_level(logging.WARNING, logger="hitl_approvals"):
        report = services.sweep()

    assert report.expired == 1
    assert (only(good).status, only(bad).status) == ("decided", "pending")
    assert "left a row for later" in caplog.text


def test_a_pass_sends_no_more_than_a_batch_and_the_next_one_goes_on(world, monkeypatch):
    monkeypatch.setattr(sweeper, "BATCH", 2)
    for _ in range(3):
        pass_expires_at(only(begin([MAIL])))

    assert [services.sweep().expired for _ in range(3)] == [2, 1, 0]


def test_a_turn_between_two_attempts_is_not_revoked(world):
    world.plan("read", raises(OSError("no")))
    turn = begin([call("read", "r", name="x")])

    assert turn.status == "ready"
    assert services.sweep().revoked == 0
    assert decide_and_resume(turn) == "completed"

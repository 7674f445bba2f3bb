"""A heartbeat outlives what goes wrong around it, and holds nobody up."""

from __future__ import annotations

import logging
import threading

import pytest
from django.db import DatabaseError, InterfaceError, connections

from hitl_approvals import heartbeat, start_turn
from hitl_approvals.services import turns

pytestmark = pytest.mark.django_db(transaction=True)
SECONDS = 10


@pytest.fixture(autouse=True)
def quick_beats(settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "LEASE": 0.3}


@pytest.fixture(autouse=True)
def own_starter(monkeypatch):
    """A process in which no run has begun yet."""
    starter = heartbeat._Starter()
    monkeypatch.setattr(heartbeat, "_starter", starter)
    return starter


@pytest.fixture
def beaten(monkeypatch):
    """Count the beats that reached the database."""
    real, reached = turns.extend_lease, threading.Semaphore(0)

    def extend(*args):
        held = real(*args)
        reached.release()
        return held

    monkeypatch.setattr(turns, "extend_lease", extend)
    return reached


def beats_once(beaten):
    """Return an agent that is busy until its lease was extended."""

    def slow(turn, given):
        assert beaten.acquire(timeout=SECONDS)
        assert not turn._run.lost.is_set()

    return slow


@pytest.mark.parametrize(
    "error",
    [InterfaceError("connection already closed"), ValueError("a wrapper of the site")],
    ids=repr,
)
def test_no_error_ends_the_beats(make_agent, monkeypatch, beaten, caplog, error):
    real, failures = turns.extend_lease, [error]

    def extend(*args):
        if failures:
            raise failures.pop()
        return real(*args)

    monkeypatch.setattr(turns, "extend_lease", extend)

    with caplog.at_level(logging.WARNING, logger="hitl_approvals"):
        turn = start_turn(make_agent(beats_once(beaten)), None, run=True)

    assert turn.status == "completed"
    assert caplog.text.count("Heartbeat of turn") == 1


def test_a_connection_that_cannot_be_closed_does_not_end_the_beats(
    make_agent, monkeypatch, beaten
):
    real, failures = turns.extend_lease, [DatabaseError("away")]

    def extend(*args):
        if failures:
            own = connections["default"]
            real_close = own.close

            def close():
                own.close = real_close
                raise InterfaceError("already closed")

            own.close = close
            raise failures.pop()
        return real(*args)

    monkeypatch.setattr(turns, "extend_lease", extend)

    turn = start_turn(make_agent(beats_once(beaten)), None, run=True)

    assert turn.status == "completed"


def test_a_run_without_a_thread_for_beats_goes_on_and_leaves_none_behind(
    make_agent, monkeypatch, own_starter, beaten, caplog
):
    """Beats of a run that never began would keep its turn from everybody for ever."""
    refused = []
    real = threading.Thread.start

    def start(thread):
        if thread.name == "hitl-heartbeats" and not refused:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)

    first = start_turn(make_agent(lambda turn, given: None), None, run=True)

    assert first.status == "completed"
    assert len(refused) == 1
    assert "cannot begin" in caplog.text
    assert own_starter._due == {}

    second = start_turn(make_agent(beats_once(beaten)), None, run=True)

    assert second.status == "completed"


def test_a_run_does_not_wait_for_a_beat_that_is_never_answered(make_agent, monkeypatch):
    asked, answered = threading.Event(), threading.Event()

    def extend(*args):
        asked.set()
        assert answered.wait(SECONDS)
        return True

    monkeypatch.setattr(turns, "extend_lease", extend)

    def slow(turn, given):
        assert asked.wait(SECONDS)

    turn = start_turn(make_agent(slow), None, run=True)
    left = [one for one in threading.enumerate() if str(turn.pk) in one.name]
    answered.set()
    for thread in left:
        thread.join(SECONDS)

    assert turn.status == "completed"
    assert [thread.is_alive() for thread in left] == [False]

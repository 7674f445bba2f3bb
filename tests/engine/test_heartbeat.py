"""The heartbeat keeps a lease from its own thread, and notices when it is lost."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading

import pytest
from django.db import DatabaseError, connections

from hitl_approvals import heartbeat, services, start_turn
from hitl_approvals.models import AgentTurn
from hitl_approvals.services import turns
from tests.support.agents import call
from tests.support.turns import PAST
from tests.support.world import Crash

pytestmark = pytest.mark.django_db(transaction=True)
SECONDS = 10
NOTE = call("note", "n", text="x")
READ = call("read", "r", name="x")


@pytest.fixture(autouse=True)
def quick_beats(settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "LEASE": 0.3}


@pytest.fixture
def beats(monkeypatch):
    """Count the beats; a test waits for them instead of sleeping."""
    real, beaten = turns.extend_lease, threading.Semaphore(0)

    def extend(*args):
        held = real(*args)
        beaten.release()
        return held

    monkeypatch.setattr(turns, "extend_lease", extend)
    return beaten


def beating() -> list[str]:
    """Return the threads that keep the lease of a run."""
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("hitl-heartbeat-")]


def test_the_lease_of_a_busy_worker_is_extended(make_agent, beats):
    seen = []

    def slow(turn, given):
        AgentTurn.objects.filter(pk=turn.id).update(lease_until=PAST)
        for _ in range(2):
            assert beats.acquire(timeout=SECONDS)
        seen.append(services.sweep().revoked)

    turn = start_turn(make_agent(slow), None, run=True)

    assert seen == [0]
    assert turn.status == "completed"


@pytest.mark.parametrize("one", [NOTE, READ], ids=["an effect", "reading"])
def test_a_lost_lease_stops_the_run_before_its_next_call(world, make_agent, beats, one):
    errors = []

    def slow(turn, given):
        services.cancel(turn.id, by=None, via="test")
        assert turn._run.lost.wait(SECONDS)
        try:
            turn.call_tools([one])
        except Exception as error:
            errors.append(type(error).__name__)
            raise

    turn = start_turn(make_agent(slow), None, run=True)

    assert errors == ["LeaseLost"]
    assert world.effects == []
    assert turn.status == "cancelled"


def test_a_lost_lease_stops_the_run_before_it_asks_the_model_again(
    world, make_agent, beats
):
    def slow(turn, given):
        services.cancel(turn.id, by=None, via="test")
        assert turn._run.lost.wait(SECONDS)
        turn.step("model", world.model_calls.append, "asked")

    start_turn(make_agent(slow), None, run=True)

    assert world.model_calls == []


def test_a_database_that_does_not_answer_is_no_lost_lease(
    make_agent, monkeypatch, caplog
):
    real, beaten = turns.extend_lease, threading.Semaphore(0)
    failures = [DatabaseError("away"), DatabaseError("still away")]

    def extend(*args):
        if failures:
            raise failures.pop()
        held = real(*args)
        beaten.release()
        return held

    monkeypatch.setattr(turns, "extend_lease", extend)

    def slow(turn, given):
        assert beaten.acquire(timeout=SECONDS)
        assert not turn._run.lost.is_set()

    with caplog.at_level(logging.WARNING, logger="hitl_approvals"):
        turn = start_turn(make_agent(slow), None, run=True)

    assert turn.status == "completed"
    assert caplog.text.count("Heartbeat of turn") == 2


def test_the_thread_ends_with_the_run_and_leaves_no_connection(
    make_agent, monkeypatch, beats
):
    closed = []
    real = connections.close_all

    def close_all():
        closed.append(threading.current_thread().name)
        real()

    monkeypatch.setattr(connections, "close_all", close_all)

    def slow(turn, given):
        assert beats.acquire(timeout=SECONDS)

    turn = start_turn(make_agent(slow), None, run=True)

    assert f"hitl-heartbeat-{turn.pk}" in closed
    assert beating() == []


def test_a_run_that_ends_before_its_first_beat_is_due_gets_no_thread(
    settings, make_agent, beats
):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "LEASE": 3600}
    seen = []

    def quick(turn, given):
        seen.append(beating())

    for _again in range(3):
        assert start_turn(make_agent(quick), None, run=True).status == "completed"

    assert seen == [[], [], []]
    assert heartbeat._starter._due == {}


def test_a_short_lease_beats_in_time_beside_a_long_one(settings, make_agent, beats):
    def short(turn, given):
        assert beats.acquire(timeout=SECONDS)

    def long(turn, given):
        settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "LEASE": 0.3}
        start_turn(make_agent(short), None, run=True)

    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "LEASE": 3600}
    turn = start_turn(make_agent(long), None, run=True)

    assert turn.status == "completed"
    assert {one.status for one in AgentTurn.objects.all()} == {"completed"}


def test_a_process_without_another_thread_to_give_tries_again(
    make_agent, monkeypatch, beats, caplog
):
    refused = []
    real = heartbeat.Heartbeat.begin

    def begin(self):
        if not refused:
            refused.append(self)
            raise RuntimeError("can't start new thread")
        real(self)

    monkeypatch.setattr(heartbeat.Heartbeat, "begin", begin)

    def slow(turn, given):
        assert beats.acquire(timeout=SECONDS)

    assert start_turn(make_agent(slow), None, run=True).status == "completed"
    assert "cannot begin" in caplog.text
    assert len(refused) == 1


def test_a_thread_that_died_is_replaced_for_the_next_run(
    monkeypatch, make_agent, beats
):
    starter = heartbeat._Starter()
    starter._thread = threading.Thread(target=int)
    starter._thread.start()
    starter._thread.join()
    monkeypatch.setattr(heartbeat, "_starter", starter)

    def slow(turn, given):
        assert beats.acquire(timeout=SECONDS)

    assert start_turn(make_agent(slow), None, run=True).status == "completed"


def test_a_forked_process_has_heartbeats_of_its_own():
    """Its parent's thread does not come along."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings.sqlite"},
        timeout=60,
    )

    assert done.returncode == 0


FORKING = """
import os, threading
import django
django.setup()
from hitl_approvals import heartbeat

class Beat:
    def __init__(self):
        self.began = threading.Event()
    def begin(self):
        self.began.set()

def begins():
    beat = Beat()
    heartbeat._starter.expect(beat, after=0)
    return beat.began.wait(10)

assert begins()
child = os.fork()
if child == 0:
    os._exit(0 if begins() else 1)
assert os.waitpid(child, 0)[1] == 0
assert begins()
"""


def test_an_agent_that_dies_leaves_no_thread_that_keeps_its_lease(make_agent, beats):
    def mortal(turn, given):
        raise Crash

    with pytest.raises(Crash):
        start_turn(make_agent(mortal), None, run=True)

    assert beating() == []
    assert AgentTurn.objects.get().status == "running"

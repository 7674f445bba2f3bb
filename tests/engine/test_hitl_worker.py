"""`manage.py hitl_worker`: turns run from their rows, with no broker anywhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import DatabaseError, InterfaceError

from hitl_approvals import Approve, services, start_turn
from hitl_approvals.management.commands import hitl_worker
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from tests.concurrency import agents_that_race  # noqa: F401  registers the agent

pytestmark = pytest.mark.django_db(transaction=True)


def _until(holds: Callable[[], bool], *, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_what_is_owed_runs_once_and_then_the_command_ends() -> None:
    turn = start_turn("racer", "one")

    call_command("hitl_worker", once=True)
    (pk,) = PendingInterrupt.objects.values_list("pk", flat=True)
    services.decide(pk, Approve(), by=None, via="test")
    call_command("hitl_worker", once=True)

    turn.refresh_from_db()
    assert turn.status == "completed"
    assert Group.objects.count() == 1


@pytest.mark.parametrize("kind", [DatabaseError, InterfaceError])
def test_a_database_that_is_away_for_a_moment_does_not_end_the_worker(
    monkeypatch, capsys, kind
) -> None:
    def away(*_names: object) -> None:
        raise kind("the connection is closed")

    monkeypatch.setattr(hitl_worker.turns, "owed", away)

    call_command("hitl_worker", once=True)

    told = "The database did not answer: the connection is closed\n"
    assert capsys.readouterr().err == told


@pytest.mark.e2e
def test_a_real_process_resumes_after_the_approval_and_stops_on_sigterm() -> None:
    turn = start_turn("racer", "one")
    # Test databases bear their own name: a child finds the same one by its settings.
    worker = subprocess.Popen(
        [sys.executable, "-c", _CHILD],
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        waits = PendingInterrupt.objects.filter(turn=turn.pk, status="pending")
        _until(waits.exists)
        services.decide(waits.get().pk, Approve(), by=None, via="test")
        _until(AgentTurn.objects.filter(pk=turn.pk, status="completed").exists)
        worker.send_signal(signal.SIGTERM)
        output, _ = worker.communicate(timeout=20)
    finally:
        if worker.poll() is None:
            worker.kill()
            worker.communicate()

    assert worker.returncode == 0, output
    assert Group.objects.count() == 1
    resolved = InterruptEvent.objects.filter(turn_id=turn.pk, type="resolved")
    assert resolved.count() == 1


_CHILD = """
import django
django.setup()
from tests.concurrency import agents_that_race
from django.core.management import call_command
call_command("hitl_worker", poll=0.1)
"""

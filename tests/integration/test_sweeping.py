"""The sweeping thread and the command of the same pass."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from celery.signals import worker_ready, worker_shutdown, worker_shutting_down
from django.core.management import call_command
from django.db import connection, connections
from pytest_django.fixtures import Settings

from hitl_approvals import services, tasks
from hitl_approvals.services import SweepReport
from hitl_approvals.sweeping import Sweeper

SECONDS = 10


class Passes:
    """Stands for `services.sweep`: says that a pass began, and waits to be let go."""

    def __init__(self) -> None:
        self.begun: queue.Queue[str] = queue.Queue()
        self.outcomes: list[Exception | SweepReport] = []

    def __call__(self) -> SweepReport:
        outcome = self.outcomes.pop(0) if self.outcomes else SweepReport()
        self.begun.put(threading.current_thread().name)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def wait(self) -> str:
        return self.begun.get(timeout=SECONDS)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Passes:
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "SWEEP": 0.01}
    made = Passes()
    monkeypatch.setattr(services, "sweep", made)
    return made


@pytest.fixture
def sweeper() -> Iterator[Sweeper]:
    made = Sweeper()
    yield made
    made.stop()
    assert made.join(SECONDS)


def test_first_pass_is_made_at_once(
    passes: Passes, sweeper: Sweeper, settings: Settings
) -> None:
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "SWEEP": 3600}

    sweeper.start()

    assert passes.wait() == "hitl-sweeper"


def test_passes_go_on_until_it_is_stopped(passes: Passes, sweeper: Sweeper) -> None:
    sweeper.start()
    for _ in range(3):
        passes.wait()

    sweeper.stop()

    assert sweeper.join(SECONDS)


def test_failed_pass_is_logged_and_the_next_one_is_made(
    passes: Passes, sweeper: Sweeper, caplog: pytest.LogCaptureFixture
) -> None:
    passes.outcomes = [RuntimeError("the database is away"), SweepReport(revoked=2)]

    with caplog.at_level(logging.INFO, logger="hitl_approvals"):
        sweeper.start()
        for _ in range(3):
            passes.wait()

    failures = [record for record in caplog.records if record.levelname == "ERROR"]
    assert [str(record.exc_info[1]) for record in failures if record.exc_info] == [
        "the database is away"
    ]
    assert "Swept: {'revoked': 2}." in caplog.messages


def test_starting_twice_makes_one_thread(passes: Passes, sweeper: Sweeper) -> None:
    sweeper.start()
    first = sweeper._thread

    sweeper.start()

    assert sweeper._thread is first


def test_thread_that_was_stopped_stays_stopped_when_another_is_started(
    passes: Passes, sweeper: Sweeper, settings: Settings
) -> None:
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "SWEEP": 3600}
    sweeper.start()
    passes.wait()
    first = sweeper._thread
    assert first is not None

    sweeper.stop()
    first.join(SECONDS)
    sweeper.start()
    passes.wait()

    assert not first.is_alive()


def test_sweeper_that_never_ran_needs_no_waiting() -> None:
    assert Sweeper().join(timeout=0)


@pytest.mark.django_db(transaction=True)
def test_pass_leaves_no_connection_open(
    sweeper: Sweeper, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "SWEEP": 0.01}
    opened: queue.Queue[bool] = queue.Queue()
    states: queue.Queue[bool] = queue.Queue()
    real = services.sweep

    def observed() -> SweepReport:
        # The state in which the pass before left this thread's connection.
        states.put(connection.connection is None)
        report = real()
        opened.put(connection.connection is not None)
        return report

    monkeypatch.setattr(services, "sweep", observed)

    sweeper.start()

    for _ in range(2):
        assert states.get(timeout=SECONDS)
        assert opened.get(timeout=SECONDS)


def test_connection_that_cannot_be_closed_does_not_end_the_passes(
    passes: Passes, sweeper: Sweeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("already gone")

    monkeypatch.setattr(connections, "close_all", broken)

    sweeper.start()

    for _ in range(3):
        passes.wait()


def test_worker_sweeps_from_ready_to_shutdown(
    passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeper = Sweeper()
    monkeypatch.setattr(tasks, "_sweeper", sweeper)

    worker_ready.send(sender=None)
    passes.wait()
    # A worker that reconnects to its broker says so again.
    worker_ready.send(sender=None)
    worker_shutting_down.send(sender=None)
    worker_shutdown.send(sender=None)

    assert sweeper.join(timeout=0)


@pytest.mark.django_db
def test_command_makes_one_pass_and_prints_the_report() -> None:
    out = StringIO()

    call_command("hitl_sweep", stdout=out)

    report: dict[str, Any] = SweepReport().as_dict()
    assert out.getvalue().splitlines() == [f"{kind} 0" for kind in report]

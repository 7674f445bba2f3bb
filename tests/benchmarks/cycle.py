"""`make bench-cycle`: what one decided call costs, beside bare psycopg.

Start with `run=True`, suspend at one gated `unsafe` call, approve as a reviewer with one
group and one queue, resume, complete; on PostgreSQL, without broker, heartbeat (the lease
is longer than the run) or sweeper. Prints figures of one process and of four; the last
line is of one process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, connections
from django.test.utils import get_runner

from hitl_approvals import Approve, run_turn, services, start_turn
from hitl_approvals.models import PendingInterrupt
from tests.benchmarks import agent
from tests.benchmarks.floor import Floor, Recording
from tests.benchmarks.profile import shares

PREPARED = {"server_side_binding": True, "prepare_threshold": 5}
"""What the docs advise on PostgreSQL where turns are many."""
PROFILED = 200
"""Cycles that the profiler watches."""


def product_cycle(reviewer_id: int) -> None:
    """Run one cycle through the public functions; the reviewer is a fresh request's."""
    reviewer = User(pk=reviewer_id, username="bench", is_active=True)
    turn = start_turn("bench", "go", run=True)
    services.decide(_interrupt_of(turn), Approve(), by=reviewer, via="bench")
    assert run_turn(turn.pk) == "completed"


def _interrupt_of(turn: Any) -> Any:
    """Return the id that the reviewer's page would carry."""
    return PendingInterrupt.objects.values_list("pk", flat=True).get(turn=turn.pk)


class Recorder:
    """Notes the statements of one cycle with their transaction bounds."""

    def __init__(self) -> None:
        self.recording = Recording()
        self._inside = False

    def __call__(
        self, execute: Any, sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        upper = sql.lstrip().upper()
        if upper.startswith(("SAVEPOINT", "RELEASE")):
            return execute(sql, params, many, context)
        statement = (sql, tuple(params or ()))
        if connection.in_atomic_block and self._inside:
            self.recording.transactions[-1].append(statement)
        else:
            self.recording.transactions.append([statement])
        self._inside = connection.in_atomic_block
        return execute(sql, params, many, context)

    def commit(self) -> None:
        self._inside = False


def record(reviewer_id: int) -> Recording:
    """Record one cycle, without the read of the id, which is the benchmark's own."""
    recorder = Recorder()
    original = connection.commit

    def commit() -> None:
        recorder.commit()
        original()

    connection.commit = commit  # type: ignore[method-assign]
    try:
        with connection.execute_wrapper(recorder):
            product_cycle(reviewer_id)
    finally:
        connection.commit = original  # type: ignore[method-assign]
    return recorder.recording


def _dsn() -> dict[str, Any]:
    given = connection.settings_dict
    names = {
        "dbname": given["NAME"],
        "host": given["HOST"],
        "port": given["PORT"],
        "user": given["USER"],
        "password": given["PASSWORD"],
    }
    return {key: value for key, value in names.items() if value}


def _timed(work: Any, seconds: float) -> float:
    """Return cycles a second over at least `seconds`."""
    done, begin = 0, time.perf_counter()
    while (spent := time.perf_counter() - begin) < seconds:
        work(done)
        done += 1
    return done / spent


def _one_process(seconds: float, reviewer_id: int, recording: Recording) -> list[float]:
    """Return product and floor rates, interleaved so that a busy machine hits both."""
    floor = Floor(recording, _dsn())
    rates = [0.0, 0.0]
    rounds = 4
    try:
        for turn in range(rounds):
            name = f"{os.getpid()}-{turn}-"
            rates[0] += _timed(lambda _: product_cycle(reviewer_id), seconds / rounds)
            rates[1] += _timed(
                lambda n, name=name: floor.cycle(f"{name}{n}"), seconds / rounds
            )
    finally:
        floor.close()
    return [rate / rounds for rate in rates]


def _in_child(args: tuple[float, int, Recording, str]) -> list[float]:
    seconds, reviewer_id, recording, name = args
    connections.close_all()
    settings.DATABASES["default"]["NAME"] = name
    connection.settings_dict["NAME"] = name
    return _one_process(seconds, reviewer_id, recording)


@contextmanager
def database() -> Any:
    """Make this run's database on PostgreSQL, and drop it."""
    runner = get_runner(settings)(verbosity=0, interactive=False)
    old = runner.setup_databases()
    try:
        yield
    finally:
        runner.teardown_databases(old)


def _print_profile(reviewer_id: int) -> None:
    for owner, share in shares(lambda: product_cycle(reviewer_id), PROFILED).items():
        print(f"{share:5.0%}  {owner}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--profile", action="store_true", help="say where time goes")
    parser.add_argument(
        "--prepared", action="store_true", help="bind and prepare on the server"
    )
    options = parser.parse_args()
    seconds = options.seconds
    # The suite's databases do not wait for the disk; a site's do, and the floor does.
    connection.settings_dict["OPTIONS"]["options"] = "-c synchronous_commit=on"
    if options.prepared:
        connection.settings_dict["OPTIONS"] |= PREPARED
    # Longer than any run here, so that no heartbeat connects.
    settings.HITL_APPROVALS = {"DISPATCHER": "worker", "LEASE": 3600}
    with database():
        reviewer = agent.make_reviewer()
        for _warm in range(5):
            product_cycle(reviewer.pk)
        recording = record(reviewer.pk)
        # The benchmark's own read of the id is not the product's.
        statements, commits = recording.statements - 1, recording.writing
        name = connection.settings_dict["NAME"]
        connections.close_all()
        with multiprocessing.get_context("fork").Pool(4) as pool:
            four = pool.map(
                _in_child, [(seconds, reviewer.pk, recording, name)] * 4, chunksize=1
            )
        product4, floor4 = (sum(one[n] for one in four) for n in (0, 1))
        print(
            f"four processes: cycles_per_s={product4:.1f} floor={floor4:.1f} "
            f"ratio={floor4 / product4:.2f}"
        )
        product, floor = _one_process(seconds, reviewer.pk, recording)
        if options.profile:
            _print_profile(reviewer.pk)
    print(f"one process: floor cycles_per_s={floor:.1f}")
    print(
        f"bench cycle: cycles_per_s={product:.1f} commits={commits} "
        f"statements={statements} floor_commits={recording.writing} "
        f"floor_statements={recording.statements - 1} ratio={floor / product:.2f}"
    )

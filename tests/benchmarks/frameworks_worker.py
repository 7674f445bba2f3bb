"""A process that runs cycles of one side when it is told to. Counts its statements."""

from __future__ import annotations

import cProfile
import pstats
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import psycopg

from tests.benchmarks.frameworks_sides import SIDES, Place
from tests.benchmarks.profile import OWNERS as OF_A_SITE
from tests.benchmarks.profile import owners

OWNERS = (
    ("our checkpointer", "/hitl_approvals/checkpoints/"),
    ("our adapter", "/hitl_approvals/agents/langgraph/"),
    *OF_A_SITE,
    ("LangGraph", "/langgraph/"),
    ("LangChain", "/langchain_core/"),
    ("DBOS", "/dbos/"),
    ("SQLAlchemy", "/sqlalchemy/"),
    ("asyncio and threads", "/asyncio/"),
    ("asyncio and threads", "/asgiref/"),
    ("asyncio and threads", "/threading.py"),
    ("asyncio and threads", "/concurrent/futures/"),
)
WARM = 10
FLUSHED = 1.1
"""Seconds after which PostgreSQL takes a connection's commits over into its figures."""


class Statements:
    """What was sent through psycopg in this process, whoever sent it.

    All sides use psycopg 3. BEGIN and COMMIT do not pass here and are not counted.
    """

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()
        for one in (psycopg.Cursor, psycopg.AsyncCursor):
            self._watch(one)

    def _watch(self, cursor: Any) -> None:
        execute, executemany = cursor.execute, cursor.executemany

        def counted(cursor: Any, *args: Any, **kwargs: Any) -> Any:
            self._add(1)
            return execute(cursor, *args, **kwargs)

        def counted_many(cursor: Any, query: Any, params: Any, **kwargs: Any) -> Any:
            rows = list(params)
            self._add(len(rows))
            return executemany(cursor, query, rows, **kwargs)

        cursor.execute, cursor.executemany = counted, counted_many

    def _add(self, number: int) -> None:
        with self._lock:
            self.count += number


def work(pipe: Connection, side: str, place: Place) -> None:
    """Open a side and do what the pipe says, until it says nothing."""
    statements = Statements()
    cycle = SIDES[side].open(place)
    for _ in range(WARM):
        cycle()
    pipe.send("ready")
    while (order := pipe.recv()) is not None:
        name, amount = order
        if name == "rate":
            pipe.send(_rate(cycle, amount))
        elif name == "flush":
            time.sleep(FLUSHED)
            pipe.send(cycle())
        elif name == "count":
            before = statements.count
            for _ in range(amount):
                cycle()
            pipe.send(statements.count - before)
        elif name == "profile":
            _profile(cycle, amount)
            pipe.send(None)
    pipe.close()


def _rate(cycle: Callable[[], None], seconds: float) -> tuple[float, float]:
    """Return cycles a second, and the milliseconds of this process in one."""
    done, begin, busy = 0, time.perf_counter(), time.process_time()
    while (spent := time.perf_counter() - begin) < seconds:
        cycle()
        done += 1
    return done / spent, (time.process_time() - busy) / done * 1000


def _profile(cycle: Callable[[], None], times: int) -> None:
    """Print where the processor time of this process's threads goes, by whose code."""
    with _profiled() as profilers:
        for _ in range(times):
            cycle()
    spent: dict[str, float] = defaultdict(float)
    for one in profilers:
        for function, told in pstats.Stats(one).stats.items():  # type: ignore[attr-defined]
            for owner, seconds in owners(function, told[2], told[4], OWNERS):
                spent[owner] += seconds
    for owner, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"{seconds / times * 1000:7.1f} ms  {owner}", flush=True)


@contextmanager
def _profiled() -> Iterator[list[cProfile.Profile]]:
    """Profile this thread and every thread that is started meanwhile, without waiting."""
    profilers = [cProfile.Profile(time.thread_time)]

    def begin(*_event: Any) -> None:
        profiler = cProfile.Profile(time.thread_time)
        profilers.append(profiler)
        profiler.enable()

    threading.setprofile(begin)
    profilers[0].enable()
    try:
        yield profilers
    finally:
        profilers[0].disable()
        threading.setprofile(None)

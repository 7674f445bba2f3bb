"""Long polls: from the commit of a decision to its answer, with many that wait at once.

Uvicorn serves the site, with Django's usual middleware, from one process on PostgreSQL.
Agent clients wait, each request on a connection of its own. Two ways to be woken: every
request waits for a row of its own and the rows are decided one after the other; or all
wait for one row, and one decision wakes them together.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import uvloop
from django.db import connection

from hitl_approvals import Approve, services
from hitl_approvals.models import AgentClient
from tests.support import remote
from tests.support.serving import Reply, Site, get, on_an_event_loop

CROWDS = 3
WAITERS = 500
CLIENTS = 10
WAIT = 30
PACE = 0.02
"""Seconds between two decisions of as many reviewers as there may be."""
CALM = 5
"""So often, one after the other, the site has no connection but the watcher's and does
next to nothing: all wait."""


@dataclass(frozen=True)
class Caller:
    """An agent client with its token."""

    client: AgentClient
    token: str


@dataclass(frozen=True)
class Figure:
    """Milliseconds from a commit to the answers that it caused."""

    name: str
    spent: list[float]

    @property
    def p50(self) -> float:
        return quantiles(self.spent, n=100)[49]

    @property
    def p99(self) -> float:
        return quantiles(self.spent, n=100)[98]

    def __str__(self) -> str:
        return (
            f"{self.name}: p50_ms={self.p50:.0f} p99_ms={self.p99:.0f} "
            f"most_ms={max(self.spent):.0f}"
        )


def callers(count: int = CLIENTS, waiting: int = WAITERS) -> list[Caller]:
    """Make agent clients that may have so many requests waiting."""
    made = []
    for n in range(count):
        client, token = services.create_client(
            f"waiting-{n}", limits={"waiting": waiting}, by=None
        )
        made.append(Caller(client, token))
    return made


class Crowd(threading.Thread):
    """Requests that wait, on an event loop in a thread of its own."""

    def __init__(self, site: Site, asked: Sequence[tuple[str, str]]) -> None:
        super().__init__(daemon=True)
        self._site = site
        self._asked = asked
        self._unsent = len(asked)
        self.all_sent = threading.Event()
        self.replies: list[Reply | BaseException] = []

    def run(self) -> None:
        # As fast as the server's: what is timed is not how this process reads.
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            self.replies = runner.run(self._ask())

    async def _ask(self) -> list[Reply | BaseException]:
        return await asyncio.gather(
            *(self._ask_until_decided(pk, token) for pk, token in self._asked),
            return_exceptions=True,
        )

    async def _ask_until_decided(self, pk: str, token: str) -> Reply:
        path = f"/api/interrupts/{pk}/?wait={WAIT}"
        headers = {"Authorization": f"Bearer {token}"}
        sent = self._count
        while True:
            reply = await get(self._site, path, headers, sent=sent)
            if reply.status != 200 or reply.json()["status"] != "pending":
                return reply
            # Decided later than one wait is long, on a slow machine: as agents do.
            sent = _nothing

    def _count(self) -> None:
        self._unsent -= 1
        if not self._unsent:
            self.all_sent.set()


def _nothing() -> None:
    pass


@contextmanager
def noted_commits() -> Iterator[list[float]]:
    """Note when each transaction of this thread's connection was committed."""
    commits: list[float] = []
    original = connection.commit

    def commit() -> None:
        original()
        commits.append(time.monotonic())

    connection.commit = commit  # type: ignore[method-assign]
    try:
        yield commits
    finally:
        connection.commit = original  # type: ignore[method-assign]


def decide(pk: Any) -> float:
    """Approve a row; return when that was committed."""
    with noted_commits() as commits:
        services.decide(pk, Approve(), by=None, via="bench")
    return commits[-1]


def each_its_own(site: Site, people: Sequence[Caller], count: int) -> Figure:
    """Let each request wait for a row of its own, decided one after the other."""
    rows = [
        (remote.ask(one.client).pk, one.token)
        for one in (people[n % len(people)] for n in range(count))
    ]
    crowd = _gather(site, [(str(pk), token) for pk, token in rows])
    committed = []
    for pk, _token in rows:
        begun = time.monotonic()
        committed.append(decide(pk))
        time.sleep(max(0.0, PACE - (time.monotonic() - begun)))
    return _figure("each its own row", crowd, committed)


def all_one(site: Site, people: Sequence[Caller], count: int) -> Figure:
    """Let all requests wait for one row."""
    one = people[0]
    pk = remote.ask(one.client).pk
    crowd = _gather(site, [(str(pk), one.token)] * count)
    return _figure("all one row", crowd, [decide(pk)] * count)


def measure_waiters(
    count: int = WAITERS, tell: Callable[[str], None] = print
) -> tuple[float, float]:
    """Return the median and the 99th percentile, in ms, of the worse of the two ways."""
    with on_an_event_loop() as site:
        people = callers()
        each_its_own(site, people, 20)  # warm
        figures = [way(site, people, count) for way in (each_its_own, all_one)]
    for figure in figures:
        tell(str(figure))
    worse = max(figures, key=lambda figure: figure.p99)
    return worse.p50, worse.p99


def _gather(site: Site, asked: Sequence[tuple[str, str]]) -> Crowd:
    """Return a crowd of which everyone waits; on a busy machine not the first one."""
    for _attempt in range(CROWDS):
        crowd = Crowd(site, asked)
        crowd.start()
        assert crowd.all_sent.wait(60)
        if _calms_down(site):
            return crowd
        crowd.join(4 * WAIT)
    raise AssertionError(f"The server did not come to rest with {len(asked)} waiting.")


def _calms_down(site: Site) -> bool:
    calm, until = 0, time.monotonic() + WAIT - 4
    while calm < CALM:
        if time.monotonic() > until:
            return False
        before = _processor_seconds(site)
        time.sleep(0.1)
        rests = _processor_seconds(site) - before <= 0.02
        calm = calm + 1 if rests and other_connections() == 1 else 0
    return True


def _processor_seconds(site: Site) -> float:
    """Return what a server has used of a processor, as Linux tells."""
    fields = Path(f"/proc/{site.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def other_connections() -> int:
    """Return how many connections to this database others have."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        (count,) = cursor.fetchone()
    return count


def _figure(name: str, crowd: Crowd, committed: Sequence[float]) -> Figure:
    crowd.join(4 * WAIT)
    spent = []
    for reply, at in zip(crowd.replies, committed, strict=True):
        assert isinstance(reply, Reply), reply
        assert reply.status == 200, reply
        assert reply.json()["status"] == "decided", reply
        spent.append((reply.at - at) * 1000)
    assert min(spent) > 0, "answered before the commit"
    return Figure(name, spent)

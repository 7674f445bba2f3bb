"""`make bench-frameworks`: one suspension and one resumption, here and elsewhere.

LangGraph with its own saver and no queue; the same graph through us; DBOS; our function
agent. Each on a database of its own on PostgreSQL, dropped afterwards, every commit on
disk. One process and four, in turn, so that a busy machine hits all. Commits are
PostgreSQL's own count, reading transactions and pollers among them; statements are
counted at psycopg's cursors, without BEGIN and COMMIT; cpu ms are those of the client
alone. Last line: cycles per second of
four processes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import psycopg
from django.db import connection, connections
from psycopg import sql

from tests.benchmarks import agent
from tests.benchmarks.cycle import database
from tests.benchmarks.frameworks_sides import SIDES, Place, migrate_dbos
from tests.benchmarks.frameworks_worker import work

PROCESSES = 4
ROUNDS = 3
COUNTED = 50
"""Cycles over which commits and statements are counted."""
PROFILED = 100
COMPARED = ("langgraph_own", "langgraph_ours", "dbos", "function_agent")
"""What the last line names."""


@dataclass
class Entry:
    """One side, its processes, and what was found."""

    name: str
    place: Place
    pipes: list[Any] = field(default_factory=list)
    one: float = 0.0
    four: float = 0.0
    commits: float = 0.0
    statements: float = 0.0
    busy: float = 0.0
    """Milliseconds of processor time that one process spends in a cycle."""

    @contextmanager
    def staffed(self) -> Iterator[None]:
        """Start the processes, and end them."""
        context = multiprocessing.get_context("spawn")
        processes = []
        for _ in range(PROCESSES):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=work, args=(theirs, self.name, self.place), daemon=True
            )
            process.start()
            theirs.close()
            processes.append(process)
            self.pipes.append(ours)
        try:
            for pipe in self.pipes:
                assert pipe.recv() == "ready"
            yield
        finally:
            for process in processes:
                process.kill()
                process.join()

    def ask(self, order: str, amount: Any = None, *, of: int = 1) -> list[Any]:
        """Let the first processes do something at once, and return what they say."""
        for pipe in self.pipes[:of]:
            pipe.send((order, amount))
        return [pipe.recv() for pipe in self.pipes[:of]]

    def measure(self, seconds: float) -> None:
        """Run one process, then all."""
        ((one, busy),) = self.ask("rate", seconds)
        self.one += one / ROUNDS
        self.busy += busy / ROUNDS
        four = self.ask("rate", seconds, of=PROCESSES)
        self.four += sum(rate for rate, _busy in four) / ROUNDS

    def count(self) -> None:
        """Count what one process sends in some cycles; the others are at rest."""
        self.ask("flush", of=PROCESSES)
        before = self._commits()
        (sent,) = self.ask("count", COUNTED)
        # One more, by whose first transaction the figures of all before are there.
        self.ask("flush")
        self.commits = (self._commits() - before) / (COUNTED + 1)
        self.statements = sent / COUNTED

    def _commits(self) -> int:
        with psycopg.connect(_url("postgres"), autocommit=True) as server:
            found = server.execute(
                "SELECT xact_commit FROM pg_stat_database WHERE datname = %s",
                [self.place.name],
            ).fetchone()
        assert found is not None
        return int(found[0])


def _url(name: str) -> str:
    given = connection.settings_dict
    user = quote(str(given["USER"] or "postgres"))
    secret = f":{quote(str(given['PASSWORD']))}" if given["PASSWORD"] else ""
    host = f"{given['HOST'] or '127.0.0.1'}:{given['PORT'] or 5432}"
    return f"postgresql://{user}{secret}@{host}/{name}"


@contextmanager
def _own_database(side: str) -> Iterator[Place]:
    """Make a database for a side that is none of Django's, and drop it."""
    name = f"hitl_bench_{side}_{os.getpid()}"
    with psycopg.connect(_url("postgres"), autocommit=True) as server:
        make = sql.SQL("CREATE DATABASE {} TEMPLATE template0")
        server.execute(make.format(sql.Identifier(name)))
    try:
        yield Place(_url(name), name, 0)
    finally:
        with psycopg.connect(_url("postgres"), autocommit=True) as server:
            drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
            server.execute(drop.format(sql.Identifier(name)))


@contextmanager
def _places() -> Iterator[dict[str, Place]]:
    with (
        database(),
        _own_database("langgraph_own") as langgraph,
        _own_database("dbos") as engine,
    ):
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(langgraph.url) as saver:
            saver.setup()
        # Four that are launched at once would all make the tables.
        _prepare_dbos(engine.url)
        name = connection.settings_dict["NAME"]
        site = Place(_url(name), name, agent.make_reviewer().pk)
        connections.close_all()
        own = {"langgraph_own": langgraph, "dbos": engine}
        yield {side: own.get(side, site) for side in SIDES}


def _prepare_dbos(url: str) -> None:
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=migrate_dbos, args=(url,))
    process.start()
    process.join()
    assert process.exitcode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15, help="for each figure")
    parser.add_argument("--only", default="", help="sides, separated by commas")
    parser.add_argument("--profile", help="say where the time of a side goes")
    options = parser.parse_args()
    chosen = [one for one in options.only.split(",") if one] or list(SIDES)
    with _places() as places:
        if options.profile:
            entry = Entry(options.profile, places[options.profile])
            with entry.staffed():
                entry.ask("profile", PROFILED)
            return
        entries = [Entry(name, places[name]) for name in chosen]
        with ExitStack() as stack:
            for entry in entries:
                stack.enter_context(entry.staffed())
                print(f"{entry.name}: {PROCESSES} processes are ready", flush=True)
            for _ in range(ROUNDS):
                for entry in entries:
                    entry.measure(options.seconds / ROUNDS)
            for entry in entries:
                entry.count()
        _tell(entries)


def _tell(entries: list[Entry]) -> None:
    heads = ("1 process", "4 processes", "commits", "statements", "cpu ms")
    print(f"{'':18}" + "".join(f"{head:>13}" for head in heads))
    for one in entries:
        print(
            f"{one.name:18}{one.one:11.1f}/s{one.four:11.1f}/s"
            f"{one.commits:13.1f}{one.statements:13.1f}{one.busy:13.1f}"
        )
    for one in entries:
        print(f"{one.name} does: {SIDES[one.name].does}")
        print(f"{one.name} does not: {SIDES[one.name].lacks}")
    found = {one.name: one.four for one in entries}
    own = found.get("langgraph_own")
    if own:
        for name in ("langgraph_ours", "langgraph_asking", "function_agent"):
            if name in found:
                print(f"{name} / langgraph_own = {found[name] / own:.2f}")
    figures = " ".join(
        f"{name}={found[name]:.1f}" for name in COMPARED if name in found
    )
    print(f"bench frameworks: {figures}")

"""Plays the matrix on several lanes at once. Needs nothing but the servers it finds."""

from __future__ import annotations

import argparse
import os
import pickle
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

from tests.servers.postgresql import postgresql
from tests.servers.redis import redis_server

if TYPE_CHECKING:
    from tests.crash.cases import Case
    from tests.crash.verdict import Verdict

LANES = 6
"""A lane waits most of the time: for a lease, a sweeper, a deadline."""
PATIENCE = 40.0


def main(arguments: Sequence[str]) -> int:
    """Play what was asked for; return 1 if anything was lost, doubled or wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash")
    parser.add_argument("--database", choices=["postgresql", "sqlite"])
    parser.add_argument("--transport", choices=["celery", "worker"])
    parser.add_argument("--signal", choices=["kill", "stop"])
    parser.add_argument("--only", default="", help="part of a case's name")
    parser.add_argument("--trimmed", action="store_true", help="a telling few")
    parser.add_argument("--outside", action="store_true", help="break messages")
    parser.add_argument("--faults", action="store_true", help="find planted faults")
    parser.add_argument("--sample", type=int, help="so many cases, by chance")
    parser.add_argument("--lanes", type=int, default=LANES, help="for each database")
    parser.add_argument("--patience", type=float, default=PATIENCE)
    options = parser.parse_args(arguments)
    if options.faults:
        options.database, options.transport = "sqlite", "worker"
    with ExitStack() as stack:
        _servers(stack, options)
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.crash.settings"
        django.setup()
        from tests.crash.roles import warm_up

        warm_up()
        return _find_faults(options) if options.faults else _play(options)


def _servers(stack: ExitStack, options: Any) -> None:
    """Find what the cases run on; what is named in the environment is used as it is."""
    if options.database != "sqlite":
        os.environ.update(stack.enter_context(postgresql()).exports())
    if (
        options.transport != "worker"
        and not options.trimmed
        and "HITL_TEST_REDIS_URL" not in os.environ
    ):
        os.environ.update(stack.enter_context(redis_server()).exports())


def _chosen(options: Any) -> list[Case]:
    from tests.crash import cases

    found = cases.matrix()
    if options.trimmed:
        found = cases.trimmed()
    elif options.outside:
        found = cases.outside()
    for name in ("database", "transport", "signal"):
        wanted = getattr(options, name)
        found = [one for one in found if wanted in (None, getattr(one, name))]
    found = [one for one in found if options.only in one.name]
    if options.sample:
        found = random.sample(found, min(options.sample, len(found)))
    # A database's cases differ much in length; mixed, no lane ends long after others.
    random.Random(1).shuffle(found)
    return found


def _play(options: Any) -> int:
    from tests.crash import table

    started = time.monotonic()
    chosen = _chosen(options)
    judged = []
    with _folder() as folder:
        for case, verdict in _judged(chosen, folder, options):
            judged.append((case, verdict))
            if not verdict.good:
                print(table.complaint(case, verdict), flush=True)
            elif len(judged) % 50 == 0:
                print(f"... {len(judged)} of {len(chosen)}", file=sys.stderr)
    took = time.monotonic() - started
    seconds = sorted(verdict.seconds for _, verdict in judged) or [0.0]
    print(*table.lines(judged), sep="\n")
    print(
        f"\n{len(chosen)} cases in {took:.0f} s; the median took "
        f"{seconds[len(seconds) // 2]:.1f} s, the slowest {seconds[-1]:.1f} s"
    )
    print(table.last_line(judged), flush=True)
    complete = len(judged) == len(chosen) > 0
    return 0 if complete and all(verdict.good for _, verdict in judged) else 1


def _find_faults(options: Any) -> int:
    """Break the product on purpose; return 1 if that goes unnoticed."""
    from tests.crash.faults import planted

    wanted = dict(planted())
    found = 0
    with _folder() as folder:
        for case, verdict in _judged(list(wanted), folder, options):
            told = getattr(verdict, wanted[case])
            print(f"{case.fault}: {wanted[case]}={told}", flush=True)
            found += bool(told)
    print(f"crash faults: planted={len(wanted)} found={found}", flush=True)
    return 0 if found == len(wanted) else 1


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hitl-crash-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _judged(
    chosen: list[Case], folder: Path, options: Any
) -> Iterator[tuple[Case, Verdict]]:
    """Play the cases in forked lanes; yield each as it is done."""
    from tests.crash.children import Child
    from tests.crash.databases import databases

    reading, writing = os.pipe()
    children = []
    with ExitStack() as stack:
        for kind in sorted({case.database for case in chosen}):
            mine = [n for n, case in enumerate(chosen) if case.database == kind]
            queue = _queue(mine)
            lanes = min(options.lanes, len(mine))
            made = stack.enter_context(databases(kind, folder, lanes))
            for number, database in enumerate(made):
                place = folder / f"{kind}{number}"

                def work(
                    place: Path = place,
                    database: dict[str, Any] = database,
                    queue: int = queue,
                ) -> None:
                    _lane(place, database, queue, writing, chosen, options)

                children.append(Child(place.name, work, folder / "lanes.log"))
        os.close(writing)
        try:
            with os.fdopen(reading, "rb") as results:
                while True:
                    try:
                        number, verdict = pickle.load(results)
                    except EOFError:
                        break
                    yield chosen[number], verdict
        finally:
            for child in children:
                child.kill() if not child.wait(5) else None
            if any(child.failed for child in children):
                print((folder / "lanes.log").read_text()[-3000:])


def _queue(numbers: list[int]) -> int:
    """Return a pipe from which every lane takes the number of its next case."""
    reading, writing = os.pipe()
    os.write(writing, b"".join(number.to_bytes(4, "big") for number in numbers))
    os.close(writing)
    return reading


def _lane(
    place: Path,
    database: dict[str, Any],
    queue: int,
    results: int,
    chosen: list[Case],
    options: Any,
) -> None:
    from tests.crash.databases import use
    from tests.crash.lane import Lane

    use(database)
    lane = Lane(place, options.patience)
    lane.enter()
    while record := os.read(queue, 4):
        number = int.from_bytes(record, "big")
        verdict = lane.play(chosen[number])
        # One write of less than a pipe's atomic size: lanes do not mix their lines.
        verdict.log = verdict.log[-2500:]
        os.write(results, pickle.dumps((number, verdict)))

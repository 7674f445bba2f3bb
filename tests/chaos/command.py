"""`python -m tests.chaos`: a storm of some length, a calm, and the reckoning."""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import django

from example_project.demo.stage import free_port
from tests.servers.own import OwnPostgres, OwnValkey, own_postgres, own_valkey
from tests.workspace import run_database

CALM_SECONDS = 90
"""How long what is owed may take once everybody is well."""


def main(arguments: Sequence[str]) -> int:
    """Break the site for a while; return 1 if anything was lost, doubled or wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", default="", help="part of a deed's name")
    parser.add_argument("--fault", default="", help="break the product like this")
    parser.add_argument("--keep", action="store_true", help="keep the logs")
    options = parser.parse_args(arguments)
    seed = random.randrange(10**6) if options.seed is None else options.seed
    print(f"seed={seed} seconds={options.seconds:.0f}", flush=True)
    with ExitStack() as stack:
        postgres = stack.enter_context(own_postgres(free_port()))
        valkey = stack.enter_context(own_valkey(free_port()))
        os.environ["HITL_TEST_REDIS_URL"] = valkey.url
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.chaos.settings"
        django.setup()
        if options.keep:
            folder = Path(tempfile.mkdtemp(prefix="hitl-chaos-"))
            print(folder)
        else:
            made = tempfile.TemporaryDirectory(prefix="hitl-chaos-")
            folder = Path(stack.enter_context(made))
        return _weather(postgres, valkey, folder, seed, options)


def _weather(
    postgres: OwnPostgres, valkey: OwnValkey, folder: Path, seed: int, options: Any
) -> int:
    from tests.chaos.people import CALM
    from tests.chaos.storm import Storm, adopt_orphans
    from tests.crash.roles import warm_up

    _prepare(postgres, folder)
    warm_up()
    adopt_orphans()
    storm = Storm(_roles(folder, options.fault), postgres, valkey, folder, seed)
    try:
        _until(lambda: False, storm, 5)
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            storm.strike(options.only)
            _until(lambda: False, storm, storm.wait())
        (folder / CALM).touch()
        postgres.wait_until_up()
        storm.pass_by()
        _until(_is_quiet, storm, CALM_SECONDS)
    finally:
        storm.end()
    return _report(folder, storm.kills, postgres)


def _prepare(postgres: OwnPostgres, folder: Path) -> None:
    import psycopg
    from psycopg import sql

    from tests.crash.databases import build, use
    from tests.crash.site import outside
    from tests.settings.database_url import database_from_url

    name = run_database()
    with psycopg.connect(postgres.url, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    database = database_from_url(postgres.url, name=name)
    database["OPTIONS"]["connect_timeout"] = 5
    build(database, folder)
    use(database)
    outside.folder = folder
    outside.slowness = 0.3


def _roles(folder: Path, fault: str) -> dict[str, Callable[[], None]]:
    from tests.chaos import roles
    from tests.chaos.people import Person

    ports = [free_port(), free_port()]
    return {
        **{f"web{n}": partial(roles.web, port) for n, port in enumerate(ports)},
        **{f"celery{n}": partial(roles.celery_worker, fault) for n in range(2)},
        **{f"worker{n}": partial(roles.hitl_worker, fault) for n in range(2)},
        **{f"person{n}": Person(folder, ports).live for n in range(2)},
    }


def _until(happened: Callable[[], bool], storm: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        storm.keep_up()
        if happened():
            return
        time.sleep(0.1)


def _is_quiet() -> bool:
    from django.db import DatabaseError

    from tests.chaos.reckoning import unfinished

    try:
        quiet = not unfinished()
    except DatabaseError:
        return False
    if not quiet:
        time.sleep(0.5)
    return quiet


def _report(folder: Path, kills: Any, postgres: OwnPostgres) -> int:
    from tests.chaos.reckoning import reckon

    # Whoever was killed last has left it recovering.
    postgres.wait_until_up()
    sums = reckon(folder)
    for deed, times in sorted(kills.items()):
        print(f"  {times:>5} {deed}")
    print("  " + ", ".join(f"{what} {n}" for what, n in sorted(sums.about.items())))
    for name in ("lost", "doubled", "wrong"):
        for text in getattr(sums, name):
            print(f"*** {name}: {text}")
    print(
        f"chaos: turns={sums.turns} kills={sum(kills.values())} "
        f"lost={len(sums.lost)} doubled={len(sums.doubled)} in_doubt={sums.in_doubt}",
        flush=True,
    )
    return 1 if sums.lost or sums.doubled or sums.wrong or not sums.turns else 0

"""Makes a migrated database for every lane: one is built, the others are copies of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection, connections

from tests.crash import roles
from tests.crash.children import Child, forget_connections
from tests.crash.site.agents import TABLE
from tests.settings.database_url import database_from_url
from tests.workspace import run_database

CREATE_TABLE = (
    f"CREATE TABLE {TABLE} (happened_to varchar(255) NOT NULL, amount integer NOT NULL)"
)


@contextmanager
def databases(kind: str, folder: Path, lanes: int) -> Iterator[list[dict[str, Any]]]:
    """Yield Django's settings of as many equal databases as there are lanes."""
    make = {"sqlite": _sqlite, "postgresql": _postgresql}[kind]
    with make(folder, lanes) as made:
        yield made


def use(database: dict[str, Any]) -> None:
    """Make a database this process's own."""
    settings.DATABASES["default"] = database
    connections.settings["default"] = connections.configure_settings(
        {"default": database}
    )["default"]
    forget_connections()


@contextmanager
def _sqlite(folder: Path, lanes: int) -> Iterator[list[dict[str, Any]]]:
    template = {**settings.DATABASES["default"], "NAME": str(folder / "template.db")}
    build(template, folder)
    made = []
    for number in range(lanes):
        copy = folder / f"sqlite{number}.db"
        shutil.copy(folder / "template.db", copy)
        made.append({**template, "NAME": str(copy)})
    yield made


@contextmanager
def _postgresql(folder: Path, lanes: int) -> Iterator[list[dict[str, Any]]]:
    import psycopg
    from psycopg import sql

    url = os.environ["HITL_TEST_POSTGRES_URL"]
    name = f"{run_database()}_crash"
    copies = [f"{name}{number}" for number in range(lanes)]

    def run(statement: str, *names: str) -> None:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    def drop(one: str) -> None:
        run("DROP DATABASE IF EXISTS {} WITH (FORCE)", one)

    try:
        run("CREATE DATABASE {} TEMPLATE {}", name, "template0")
        build(database_from_url(url, name=name), folder)
        for copy in copies:
            run("CREATE DATABASE {} TEMPLATE {}", copy, name)
        yield [database_from_url(url, name=copy) for copy in copies]
    finally:
        # Each waits for a checkpoint; at the same time they wait for the same one.
        with ThreadPoolExecutor() as pool:
            list(pool.map(drop, (*copies, name)))


def build(database: dict[str, Any], folder: Path) -> None:
    """Migrate an empty database, in a process of its own, and let people in.

    Raises:
        RuntimeError: It could not be made; the text holds the log.
    """

    def work() -> None:
        use(database)
        call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute(CREATE_TABLE)
        from rest_framework.authtoken.models import Token

        for person in roles.PEOPLE:
            user = get_user_model().objects.create_superuser(person, password=None)
            Token.objects.create(user=user, key=roles.token_of(person))
        from hitl_approvals import services
        from hitl_approvals.models import AgentClient
        from hitl_approvals.services.client_tokens import digest_of

        client, _token = services.create_client(
            roles.AGENT, limits={"per_minute": None, "open": None}, by=None
        )
        known = digest_of(roles.token_of(roles.AGENT))
        AgentClient.objects.filter(pk=client.pk).update(token_digest=known)
        if connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    log = folder / "migrate.log"
    child = Child("migrate", work, log)
    if not child.wait(120) or child.failed:
        raise RuntimeError(f"The database could not be made:\n{log.read_text()}")

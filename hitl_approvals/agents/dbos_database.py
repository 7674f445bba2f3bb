"""The system database of DBOS, for a client that no silence of it holds up."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from hitl_approvals.agents.extras import imported

EXTRA = "dbos"
SQLITE = "sqlite"
REPLY = 5
"""Seconds that one answer of the database may take."""
LOCKED = 60
"""Seconds after which the database ends a transaction whose client is frozen."""


def place_of(database: str) -> str:
    """Return where a database is, without user and password.

    It is read as SQLAlchemy reads it: a password may hold what ends a host elsewhere.
    """
    url = imported("sqlalchemy", extra=EXTRA).make_url(database)
    if url.get_backend_name() == SQLITE:
        return str(url.database)
    host = url.host or url.query.get("host") or "localhost"
    return f"{host}:{url.port or 5432}/{url.database or ''}"


class Database:
    """The connections of one client: opened in a bounded time, broken when they hang."""

    def __init__(self, database: str) -> None:
        sqlalchemy = imported("sqlalchemy", extra=EXTRA)
        url = sqlalchemy.make_url(database)
        self._open: list[Any] = []
        self._engine: Any = None
        self.options: Mapping[str, Any]
        """By what a client is told of the database."""
        if url.get_backend_name() == SQLITE:
            self.options = {"system_database_url": database}
            return
        url = url.set(drivername="postgresql+psycopg")
        if "connect_timeout" not in url.query:
            url = url.update_query_dict({"connect_timeout": str(REPLY)})
        self._engine = sqlalchemy.create_engine(url)
        # The first of all: what the engine itself asks for next may hang as well.
        sqlalchemy.event.listen(self._engine, "do_connect", self._connect)
        self.options = {"system_database_engine": self._engine}

    def hang_up(self) -> None:
        """Break all connections: whoever waits for an answer hears that there is none."""
        for connection in self._open:
            # One that is closed has no socket any more.
            with (
                suppress(OSError, imported("psycopg", extra=EXTRA).Error),
                socket.socket(fileno=os.dup(connection.fileno())) as end,
            ):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close all connections."""
        if self._engine is not None:
            self._engine.dispose()

    def _connect(
        self, dialect: Any, _record: Any, args: Any, options: Mapping[str, Any]
    ) -> Any:
        connection = dialect.connect(*args, **options)
        self._open.append(connection)
        # As DBOS sets it for engines that it makes itself.
        connection.execute(f"SET idle_in_transaction_session_timeout = {LOCKED * 1000}")
        connection.commit()
        return connection

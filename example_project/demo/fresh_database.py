"""A database that exists for one run of the check only. Knows no Django."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit


@contextmanager
def fresh_database(url: str | None) -> Iterator[dict[str, str]]:
    """Make one beside the one that `url` names, and yield the environment that names it.

    Without a URL there is nothing to make: SQLite's is a file of the stage.
    """
    if not url:
        yield {}
        return
    import psycopg
    from psycopg import sql

    name = f"hitl_demo_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as connection:
        # `template1` cannot be copied while somebody else copies it.
        make = sql.SQL("CREATE DATABASE {} TEMPLATE template0")
        connection.execute(make.format(sql.Identifier(name)))
    try:
        yield {"DATABASE_URL": urlunsplit(urlsplit(url)._replace(path=f"/{name}"))}
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
            connection.execute(drop.format(sql.Identifier(name)))

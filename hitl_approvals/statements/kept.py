"""The compiled statements of each connection."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper

T = TypeVar("T")

MOST = 500
"""Shapes kept for a connection. A program has some dozens; more means that something
which varies was taken for a part of the shape."""
_NAME = "_hitl_statements"


def of(connection: BaseDatabaseWrapper) -> dict[Hashable, Any]:
    """Return what was compiled on a connection, by its shape.

    It lives and dies with Django's connection object: what converts values on reading
    holds on to that, so that a table of ours, even a weak one, would keep the connection
    of every thread that ever was.
    """
    found: dict[Hashable, Any] = vars(connection).setdefault(_NAME, {})
    return found


def kept(connection: BaseDatabaseWrapper, shape: Hashable, make: Callable[[], T]) -> T:
    """Return what was compiled for a shape on this connection, or compile it now.

    A connection belongs to one thread, so nothing is shared between threads here.
    """
    own = of(connection)
    found: T | None = own.get(shape)
    if found is None:
        if len(own) >= MOST:
            own.clear()
        found = own[shape] = make()
    return found

"""The compiled statements of each connection."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from django.db.backends.base.base import BaseDatabaseWrapper

T = TypeVar("T")

MOST = 500
"""Shapes kept for a connection. A program has some dozens; more means that something
which varies was taken for a part of the shape."""

_kept: WeakKeyDictionary[BaseDatabaseWrapper, dict[Hashable, Any]] = WeakKeyDictionary()


def kept(connection: BaseDatabaseWrapper, shape: Hashable, make: Callable[[], T]) -> T:
    """Return what was compiled for a shape on this connection, or compile it now.

    A connection belongs to one thread, so nothing is shared between threads here; what
    converts values on reading holds on to its connection, so nothing is shared between
    connections either.
    """
    own = _kept.get(connection)
    if own is None:
        own = _kept.setdefault(connection, {})
    found: T | None = own.get(shape)
    if found is None:
        if len(own) >= MOST:
            own.clear()
        found = own[shape] = make()
    return found

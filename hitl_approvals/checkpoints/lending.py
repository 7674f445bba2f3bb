"""Lends database connections to threads that have none of their own.

LangGraph saves on the threads of a pool that it makes for each run. Django would open a
connection for each of them and close none. Here a thread borrows one for a single
operation; what nobody borrows for a second is closed.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import ReferenceType, ref

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from hitl_approvals.exceptions import UnsafeContext

IDLE_SECONDS = 1.0
"""How long a connection is kept for the next operation: the steps of a run follow fast."""
LIMIT = 4
"""How many connections are lent at a time; who comes then waits for one of them."""
PATIENCE_SECONDS = 0.02
"""A wait for a lent connection costs less than a new one, up to here."""


class Lender:
    """The connections that one process lends, by alias."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._returned = threading.Condition(self._lock)
        self._idle: dict[str, list[tuple[float, BaseDatabaseWrapper]]]
        self._idle = defaultdict(list)
        self._lent: dict[str, int] = defaultdict(int)
        self._closer: threading.Thread | None = None

    def take(self, alias: str) -> BaseDatabaseWrapper:
        """Return a connection for this thread to use and to give back."""
        with self._lock:
            if not self._idle[alias] and self._lent[alias]:
                self._returned.wait(PATIENCE_SECONDS)
            while not self._idle[alias] and self._lent[alias] >= LIMIT:
                # Each is lent for one operation, and that needs no second one.
                self._returned.wait()
            self._lent[alias] += 1
            if self._idle[alias]:
                return self._idle[alias].pop()[1]
        try:
            made = connections.create_connection(alias)
        except BaseException:
            self._count_back(alias)
            raise
        # Nobody else could commit what is saved on it.
        made.settings_dict = {**made.settings_dict, "AUTOCOMMIT": True}
        made.inc_thread_sharing()
        return made

    def give_back(self, connection: BaseDatabaseWrapper, *, sound: bool) -> None:
        """Take a connection back, and keep it for a while if it can be used again."""
        keep = (
            sound
            and connection.connection is not None
            and not connection.errors_occurred
            and not connection.in_atomic_block
            # A pool of the site's own does this better.
            and getattr(connection, "pool", None) is None
        )
        try:
            if not keep:
                connection.close()
        finally:
            self._count_back(connection.alias, keep=connection if keep else None)

    def _count_back(
        self, alias: str, *, keep: BaseDatabaseWrapper | None = None
    ) -> None:
        with self._lock:
            self._lent[alias] -= 1
            if keep is not None:
                self._idle[alias].append((time.monotonic(), keep))
                if self._closer is None:
                    self._closer = threading.Thread(
                        target=self._close_what_idles,
                        name="hitl-checkpoints-closer",
                        daemon=True,
                    )
                    self._closer.start()
            self._returned.notify_all()

    def close_idle(self, alias: str | None = None, *, seconds: float = 0.0) -> None:
        """Close what nobody has borrowed for so many seconds."""
        before = time.monotonic() - seconds
        closing = []
        with self._lock:
            for name in list(self._idle) if alias is None else [alias]:
                kept = []
                for since, connection in self._idle[name]:
                    if since <= before:
                        closing.append(connection)
                    else:
                        kept.append((since, connection))
                self._idle[name] = kept
        for connection in closing:
            connection.close()

    def _close_what_idles(self) -> None:
        while True:
            time.sleep(IDLE_SECONDS)
            self.close_idle(seconds=IDLE_SECONDS)
            with self._lock:
                if not any(self._idle.values()) and not any(self._lent.values()):
                    self._closer = None
                    return


_lender = Lender()
_of_the_parent: list[Lender] = []
"""A child must not close its parent's connections, not even by forgetting them."""

_callers: ContextVar[ReferenceType[BaseDatabaseWrapper] | None]
_callers = ContextVar("hitl_checkpoints_caller", default=None)
"""The connection of the code that runs the graph; its pool's threads inherit this."""


@contextmanager
def connection_of(alias: str) -> Iterator[BaseDatabaseWrapper]:
    """Make `connections[alias]` usable on this thread, and leave nothing open on it.

    A connection that is open here belongs to somebody: a request, a worker, a
    transaction, a test. It is used, and stays as it is. So is the main thread's, which
    Django opens and closes as ever.

    Raises:
        UnsafeContext: The graph is run inside a transaction, and this thread would wait
            for it to end while it waits for this thread.
    """
    own = next(
        (one for one in connections.all(initialized_only=True) if one.alias == alias),
        None,
    )
    if (
        own is not None and own.connection is not None
    ) or threading.current_thread() is threading.main_thread():
        _callers.set(ref(connections[alias]))
        yield connections[alias]
        return
    _refuse_a_deadlock(alias)
    lender = _lender
    lent = lender.take(alias)
    connections[alias] = lent
    sound = False
    try:
        yield lent
        sound = True
    finally:
        if own is None:
            del connections[alias]
        else:
            connections[alias] = own
        lender.give_back(lent, sound=sound)


def _refuse_a_deadlock(alias: str) -> None:
    caller = (_callers.get() or (lambda: None))()
    if (
        caller is not None
        and caller.alias == alias
        and caller.vendor == "sqlite"
        and caller.in_atomic_block
    ):
        raise UnsafeContext(
            "The graph is run inside a transaction, and LangGraph saves on threads of "
            "its own: SQLite lets only one write. Run it outside, or run "
            "`async_to_sync(graph.ainvoke)`, which saves inside the transaction."
        )


def close_idle_connections(alias: str | None = None) -> None:
    """Close the connections that are kept for the next operation, of one alias or all."""
    _lender.close_idle(alias)


def _start_anew() -> None:
    global _lender
    _of_the_parent.append(_lender)
    _lender = Lender()


atexit.register(close_idle_connections)
os.register_at_fork(after_in_child=_start_anew)

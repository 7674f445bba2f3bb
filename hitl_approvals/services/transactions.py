"""How services open transactions: which database, how often to retry, and when not at all."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from enum import IntEnum
from typing import Any, TypeVar

from django.db import Error, OperationalError, connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from hitl_approvals.exceptions import UnsafeContext
from hitl_approvals.models import AgentTurn

T = TypeVar("T")

RETRIES = 3
_SQLSTATES = {"40P01", "40001"}
_MYSQL_CODES = {1205, 1213}


def alias() -> str:
    """Return the one database alias that holds all our tables."""
    return router.db_for_write(AgentTurn)


def is_transient(error: OperationalError) -> bool:
    """Tell whether the database gave up on a conflict that a retry may win."""
    cause = error.__cause__
    state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    if state in _SQLSTATES:
        return True
    if error.args and error.args[0] in _MYSQL_CODES:
        return True
    name = getattr(cause, "sqlite_errorname", "")
    return name.startswith("SQLITE_BUSY") or name == "SQLITE_LOCKED"


def run_alone(work: Callable[[], T]) -> T:
    """Run one statement that is a transaction of its own; retry conflicts.

    Saves the two trips of a BEGIN and a COMMIT around it.

    Args:
        work: Sends one statement.

    Raises:
        RuntimeError: Another transaction is open.
        OperationalError: The conflict outlived the retries.
    """
    if _inside(connections[alias()]):
        raise RuntimeError("A statement of its own cannot be part of a transaction.")

    def alone(attempt: _Attempt) -> T:
        # It is its own commit: whoever loses the answer cannot tell what became of it.
        attempt.came_to = _Stage.COMMIT
        with may_be_refused():
            return work()

    return _retried(alone)


def may_be_refused() -> AbstractContextManager[Any]:
    """Keep a caller's transaction usable when the one statement inside is refused.

    Outside of any, the statement is a transaction of its own.
    """
    using = alias()
    if _alone(connections[using]):
        return nullcontext()
    return transaction.atomic(using=using)


def run_atomic(work: Callable[[], T], *, durable: bool = False) -> T:
    """Run `work` in a transaction; retry conflicts when this is the outermost one.

    Where the connection is lost before the commit is sent, nothing was changed: that is
    tried once more on a new one. `work` may run several times, so it must not change
    anything but rows.

    Args:
        work: Reads nothing before its first write.
        durable: Refuse to be part of a caller's transaction.

    Raises:
        RuntimeError: `durable` inside another transaction.
        OperationalError: The conflict outlived the retries.
    """
    using = alias()
    if durable and _inside(connections[using]):
        raise RuntimeError("A durable transaction cannot be part of another.")

    def atomically(attempt: _Attempt) -> T:
        with transaction.atomic(using=using):
            attempt.begin()
            result = work()
            attempt.came_to = _Stage.COMMIT
        return result

    return _retried(atomically)


class _Stage(IntEnum):
    BEGIN = 0
    WORK = 1
    COMMIT = 2
    """Sent, or about to be."""
    OVER = 3


class _Attempt:
    """How far one attempt came, which decides whether its error allows another."""

    def __init__(self, connection: BaseDatabaseWrapper, *, is_outermost: bool) -> None:
        self._connection = connection
        self._is_outermost = is_outermost
        self._held = connection.connection
        """What the driver has; None while nothing is connected."""
        self.came_to = _Stage.BEGIN

    def begin(self) -> None:
        """Note that a transaction is open."""
        self.came_to = _Stage.WORK
        self._held = self._connection.connection
        if self._is_outermost:
            # Before anything else that waits for the commit, and may fail.
            transaction.on_commit(self._end, using=self._connection.alias)

    def _end(self) -> None:
        self.came_to = _Stage.OVER

    def lost_a_conflict(self, error: Error) -> bool:
        """Tell whether a retry may win; what waits for the commit has its own ones."""
        return (
            self.came_to < _Stage.OVER
            and isinstance(error, OperationalError)
            and is_transient(error)
        )

    def lost_its_connection(self) -> bool:
        """Tell whether the database let go of this, surely without a commit."""
        # Django replaces a connection on which it cannot even roll back.
        replaced = self._connection.connection is not self._held
        if self.came_to == _Stage.BEGIN:
            return self._held is not None and (replaced or not self._answers())
        return replaced and self.came_to == _Stage.WORK

    def _answers(self) -> bool:
        """Tell whether the connection is there, with what somebody began on it by SQL."""
        try:
            with (
                self._connection.wrap_database_errors,
                closing(self._held.cursor()) as it,
            ):
                it.execute("SELECT 1")
        except Error:
            return False
        return True


def _retried(work: Callable[[_Attempt], T]) -> T:
    connection = connections[alias()]
    outermost = _alone(connection)
    tries, reconnected = 0, False
    while True:
        attempt = _Attempt(connection, is_outermost=outermost)
        try:
            return work(attempt)
        except Error as error:
            if not outermost or tries == RETRIES:
                raise
            if not attempt.lost_a_conflict(error):
                if reconnected or not attempt.lost_its_connection():
                    raise
                reconnected = True
                with suppress(Error):
                    connection.close()
        tries += 1
        # Two that met once would meet again in lockstep.
        time.sleep(random.uniform(0, 0.02 * 2**tries))  # noqa: S311  not a secret


def refuse_inside_transaction(what: str) -> None:
    """Raise unless no transaction is open, Django's `TestCase` excepted.

    Raises:
        UnsafeContext: An agent would run inside somebody's transaction: a rollback
            there would forget effects that happened.
    """
    if _inside(connections[alias()]):
        raise UnsafeContext(
            f"{what} must not be called inside transaction.atomic(), nor while "
            "autocommit is off: the agent's effects would outlive a rollback. Call it "
            "after the commit."
        )


def _alone(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether a statement would be a transaction of its own. Connects to nothing."""
    if connection.in_atomic_block:
        return False
    if connection.connection is None:
        return bool(connection.settings_dict["AUTOCOMMIT"])
    return connection.autocommit


def _inside(connection: BaseDatabaseWrapper) -> bool:
    blocks = connection.atomic_blocks
    if blocks:
        # Django's own marker of its `TestCase`, which its durable blocks ask too.
        return not getattr(blocks[-1], "_from_testcase", False)
    return not _alone(connection)

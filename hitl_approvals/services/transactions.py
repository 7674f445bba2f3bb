"""How services open transactions: which database, how often to retry, and when not at all."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from django.db import OperationalError, connections, router, transaction
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

    def alone() -> T:
        with may_be_refused():
            return work()

    return _retried(alone)


def may_be_refused() -> AbstractContextManager[Any]:
    """Keep a caller's transaction usable when the one statement inside is refused.

    Outside of any, the statement is a transaction of its own.
    """
    using = alias()
    if connections[using].in_atomic_block:
        return transaction.atomic(using=using)
    return nullcontext()


def run_atomic(work: Callable[[], T], *, durable: bool = False) -> T:
    """Run `work` in a transaction; retry conflicts when this is the outermost one.

    `work` may run several times, so it must not change anything but rows.

    Args:
        work: Reads nothing before its first write.
        durable: Refuse to be part of a caller's transaction.

    Raises:
        RuntimeError: `durable` inside another transaction.
        OperationalError: The conflict outlived the retries.
    """
    using = alias()

    def atomically() -> T:
        with transaction.atomic(using=using, durable=durable):
            return work()

    return _retried(atomically)


def _retried(work: Callable[[], T]) -> T:
    outermost = not connections[alias()].in_atomic_block
    attempt = 0
    while True:
        try:
            return work()
        except OperationalError as error:
            if not outermost or attempt == RETRIES or not is_transient(error):
                raise
        attempt += 1
        # Two that met once would meet again in lockstep.
        time.sleep(random.uniform(0, 0.02 * 2**attempt))  # noqa: S311  not a secret


def refuse_inside_transaction(what: str) -> None:
    """Raise unless no transaction is open, Django's `TestCase` excepted.

    Raises:
        UnsafeContext: An agent would run inside somebody's transaction: a rollback
            there would forget effects that happened.
    """
    if _inside(connections[alias()]):
        raise UnsafeContext(
            f"{what} must not be called inside transaction.atomic(): the agent's "
            "effects would outlive a rollback. Call it after the commit."
        )


def _inside(connection: BaseDatabaseWrapper) -> bool:
    blocks = connection.atomic_blocks
    # `_from_testcase` is Django's own marker, which its durable blocks ask too.
    return bool(blocks) and not getattr(blocks[-1], "_from_testcase", False)

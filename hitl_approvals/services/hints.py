"""Announces, after the commit, that a run may be owed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from uuid import UUID

from django.db import transaction

from hitl_approvals import dispatchers
from hitl_approvals.services.transactions import alias

_silent: ContextVar[bool] = ContextVar("hitl_silent_hints", default=False)


def wake(turn_id: UUID) -> None:
    """Announce, after the commit, that a run may be owed. Losing this costs a sweep."""
    if _silent.get():
        return

    def announce() -> None:
        dispatchers.wake(turn_id)

    transaction.on_commit(announce, using=alias(), robust=True)


@contextmanager
def unannounced() -> Iterator[None]:
    """Announce no run that comes to be owed inside: the caller makes it at once.

    If the caller dies before that, the sweeper announces it like any lost hint.
    """
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)

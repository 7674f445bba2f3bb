"""What a tool may know of the call that it is in. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Underway:
    """The call that runs in this context."""

    idempotency_key: str
    """The same in every attempt of one authorization; send it to the other side."""
    deadline: datetime | None
    """When the call has to be over; None for a call that has no time limit."""
    interrupt_id: str
    """The interrupt that allowed it; empty for a call that needed none."""


_current: ContextVar[Underway | None] = ContextVar("hitl_call", default=None)


def current_call() -> Underway | None:
    """Return the call that this code is in, or None outside a tool."""
    return _current.get()


@contextmanager
def inside(call: Underway) -> Iterator[None]:
    """Let `current_call()` return `call` while the block runs."""
    token = _current.set(call)
    try:
        yield
    finally:
        _current.reset(token)

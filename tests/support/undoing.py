"""Tries something on a row, and takes it back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


@contextmanager
def undone() -> Iterator[None]:
    """Take back what happens inside, so that one row serves many attempts."""
    attempt = transaction.atomic()
    # As in Django's own test cases: what refuses to join a transaction may run in this.
    attempt._from_testcase = True  # type: ignore[attr-defined]
    with attempt:
        yield
        transaction.set_rollback(True)

"""Whoever tampers with the audit trail starts from a clean history."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from tests.auditing.tampering import make_trigger
from tests.support.fixtures import (  # noqa: F401
    make_agent,
    make_user,
    reviewer,
    world,
)


@pytest.fixture
def trail(db: None) -> Iterator[None]:
    """Let a test change events; the trigger is made anew where no rollback does it."""
    yield
    if connection.vendor == "mysql":
        make_trigger()

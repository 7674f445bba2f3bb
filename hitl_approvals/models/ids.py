"""Primary keys that sort by time."""

from __future__ import annotations

from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """Return a UUIDv7: unique without asking the database, ordered by creation."""
    return UUID(int=uuid7().int)

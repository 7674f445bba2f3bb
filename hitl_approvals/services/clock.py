"""The database's time between two reads of it."""

from __future__ import annotations

import time
from datetime import datetime, timedelta


class DbClock:
    """The database's clock, carried forward by the monotonic one.

    Audit events hash their time, so it must be known before the INSERT; the wall clock
    of a worker is not trusted for it.
    """

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._read_at = time.monotonic()

    def now(self) -> datetime:
        """Return the database's time as far as this process can tell."""
        return self._now + timedelta(seconds=time.monotonic() - self._read_at)

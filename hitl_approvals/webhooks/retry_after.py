"""Reads `Retry-After`: seconds, or a date by the other side's own clock."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def seconds_until(value: str | None, date: str | None = None) -> float | None:
    """Return how many seconds a `Retry-After` asks for; None if it says nothing.

    Args:
        value: The header as it came.
        date: The `Date` of the same answer: two times of one clock are compared, so
            that it does not matter whether that clock is right.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    moment = _moment(text)
    if moment is None:
        return None
    since = _moment(date or "") or datetime.now(UTC)
    return max((moment - since).total_seconds(), 0.0)


def _moment(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)

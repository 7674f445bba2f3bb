"""Reads moments from the command line."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import UTC, datetime

from django.utils.dateparse import parse_datetime


def moment(text: str) -> datetime:
    """Read an ISO moment that says which time zone it means.

    Raises:
        ArgumentTypeError: It does not, or it is no moment.
    """
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ArgumentTypeError(
            f"{text!r} is no moment with a time zone, such as 2026-01-31T08:00:00Z."
        )
    return found.astimezone(UTC)

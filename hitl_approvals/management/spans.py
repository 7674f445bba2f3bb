"""Reads spans of time from the command line."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import timedelta


def seconds(text: str) -> timedelta:
    """Read a number of seconds.

    Raises:
        ArgumentTypeError: It is no number, or below 0.
    """
    try:
        number = float(text)
        if number >= 0:
            return timedelta(seconds=number)
    except (OverflowError, ValueError):
        pass
    raise ArgumentTypeError(f"{text!r} is no number of seconds.")

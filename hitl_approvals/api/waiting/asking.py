"""What a reader says about waiting: how long, and for which states. Reads no row."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from rest_framework.request import Request

from hitl_approvals.api.errors import BadRequest

MOST = 30
"""Seconds that one request may wait; proxies often end one after 60."""
WAIT, WHILE = "wait", "while"
# Of the many spellings of a number the plain one: no sign, exponent or other digits.
_SECONDS = re.compile(r"[0-9]{1,2}(\.[0-9]{1,6})?")


@dataclass(frozen=True, slots=True)
class Asked:
    """How long a request may wait, and in which states there is nothing to tell."""

    seconds: float
    held: frozenset[str]


def read(
    request: Request, *, known: Collection[str], default: Collection[str]
) -> Asked | None:
    """Return what the query asks for; None is a plain read.

    Args:
        request: With or without `wait` and `while`.
        known: The states that there are.
        default: Those to wait in if the reader names none.

    Raises:
        BadRequest: A value cannot be read, or `while` came without `wait`.
    """
    waits = request.query_params.getlist(WAIT)
    states = request.query_params.getlist(WHILE)
    if not waits and not states:
        return None
    if len(waits) != 1:
        raise _refused(WAIT, "Give it once.")
    (text,) = waits
    if _SECONDS.fullmatch(text) is None or float(text) > MOST:
        raise _refused(WAIT, f"Must be a number of seconds from 0 to {MOST}.")
    if not set(states) <= set(known):
        raise _refused(WHILE, f"Must be one of: {', '.join(known)}.")
    return Asked(float(text), frozenset(states or default))


def _refused(loc: str, message: str) -> BadRequest:
    return BadRequest(f"{loc}: {message}", errors=[{"loc": loc, "message": message}])

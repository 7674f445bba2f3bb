"""Where the time of a cycle goes, by who wrote the code. Counts what the profiler sees.

The profiler makes Python slower and waiting not, so the shares of Python are upper bounds.
"""

from __future__ import annotations

import cProfile
import pstats
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

Function = tuple[str, int, str]

OWNERS = (
    ("hitl_approvals", "/hitl_approvals/"),
    ("Django: building queries and rows", "/django/db/models/"),
    ("Django: the rest", "/django/"),
    ("psycopg, and waiting for PostgreSQL", "/psycopg"),
    ("the benchmark itself", "/tests/benchmarks/"),
)
OTHERS = "others: the standard library, pydantic, jsonschema"


def shares(work: Callable[[], Any], times: int) -> dict[str, float]:
    """Return which part of the time each owner's code took, the largest first."""
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(times):
        work()
    profiler.disable()
    spent: dict[str, float] = defaultdict(float)
    for function, (_, _, own, _, callers) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        for owner, seconds in owners(function, own, callers):
            spent[owner] += seconds
    whole = sum(spent.values())
    ranked = sorted(spent.items(), key=lambda item: -item[1])
    return {owner: seconds / whole for owner, seconds in ranked}


def owners(
    function: Function,
    own: float,
    callers: dict[Function, tuple[int, int, float, Any]],
    known: Sequence[tuple[str, str]] = OWNERS,
) -> list[tuple[str, float]]:
    """Return whose time a function's own time is: a built-in's is its callers'."""
    if function[0] != "~" or not callers:
        return [(_owner(function, known), own)]
    return [(_owner(caller, known), told[2]) for caller, told in callers.items()]


def _owner(function: Function, known: Sequence[tuple[str, str]]) -> str:
    path = function[0]
    for owner, part in known:
        if part in path:
            return owner
    return OTHERS

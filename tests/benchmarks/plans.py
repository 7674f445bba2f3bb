"""How PostgreSQL goes about statements that were captured. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.db import connection, transaction

if TYPE_CHECKING:
    from tests.benchmarks.api import ApiSite

LARGE = (
    "hitl_approvals_pendinginterrupt",
    "hitl_approvals_interruptevent",
    "hitl_approvals_agentturn",
    "hitl_approvals_turnstep",
)
VIEWS = ("decide", "consume", "outcome", "raise", "one sweep")
_PLANNED = ("SELECT", "UPDATE", "INSERT", "DELETE")


def plan(sql: str) -> list[str]:
    """Return the plan of a statement, as PostgreSQL tells it, without running it."""
    if not sql.lstrip().startswith(_PLANNED):
        return []
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (COSTS OFF) {sql.replace('%', '%%')}")
        return [line for (line,) in cursor.fetchall()]


def told(sql: str) -> Iterator[str]:
    """Yield the beginning of a statement and where its plan looks."""
    lines = plan(sql)
    if not lines:
        return
    yield f"  {sql.lstrip()[:60]} ..."
    for line in lines:
        if "Scan" in line or "Cond" in line or "Sort" in line:
            yield f"      {line.strip()[:140]}"


def sequential(site: ApiSite) -> int:
    """Return how many statements of the writes read a large table from end to end."""
    return sum(
        any(f"Seq Scan on {table}" in line for table in LARGE)
        for view in VIEWS
        for one in site.captured(view)
        for line in plan(one["sql"])
    )

"""Counts that stop at a cap, and the first of an order: many of them in one query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import IntegerField, QuerySet, Subquery

from hitl_approvals.models import DbNow, ReviewQueue

CAP = 1000
"""Rows that are counted; one more is reported when there are more."""


class _CountOf(Subquery):
    """How many rows a query with a limit has."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) hitl_counted)"
    output_field = IntegerField()
    empty_result_set_value = 0


@dataclass(frozen=True, slots=True)
class Glance:
    """What one query saw."""

    now: datetime
    counts: dict[str, int]
    """At most one more than the cap."""
    firsts: dict[str, Any]
    """The first value of each order; None if there is none."""


def glance(
    counts: Mapping[str, QuerySet[Any]],
    firsts: Mapping[str, tuple[QuerySet[Any], str]] | None = None,
    *,
    cap: int = CAP,
) -> Glance:
    """Count several querysets, and take the lowest value of columns, in one query.

    Each count reads an index no further than one row beyond the cap.
    """
    firsts = firsts or {}
    columns: dict[str, Any] = {
        f"count{number}": _CountOf(limited(rows, cap))
        for number, rows in enumerate(counts.values())
    }
    columns |= {
        f"first{number}": Subquery(
            rows.order_by(column).values(column.removeprefix("-"))[:1]
        )
        for number, (rows, column) in enumerate(firsts.values())
    }
    # Any table with a row does; the queue `default` is made with the tables.
    found = ReviewQueue.objects.annotate(now=DbNow(), **columns).order_by("pk")
    seen = found.values("now", *columns).first()
    if seen is None:
        raise ReviewQueue.DoesNotExist("the queue `default` is missing; migrate")
    return Glance(
        seen["now"],
        {name: seen[f"count{number}"] for number, name in enumerate(counts)},
        {name: seen[f"first{number}"] for number, name in enumerate(firsts)},
    )


def limited(rows: QuerySet[Any], cap: int = CAP) -> QuerySet[Any]:
    """Return the keys of one row more than the cap, if there are that many."""
    return rows.order_by().values("pk")[: cap + 1]

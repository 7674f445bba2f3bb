"""How interrupts were decided in a period: by day, by tool and by queue.

What is counted stands in one index, `hitl_int_decided_idx`; no query here may name
another column, or each row that it counts is fetched.

A period's newest decisions are counted by the database, up to a cap. Where there are
more, the period begins later, and says so; nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any

from django.db.models import Case, Count, IntegerField, QuerySet, Value, When

from hitl_approvals.enums import DecisionType
from hitl_approvals.models import PendingInterrupt

MOST = 5_000
"""Decisions of a period that are counted."""
KINDS = (
    DecisionType.APPROVE,
    DecisionType.EDIT,
    DecisionType.RESPOND,
    DecisionType.REJECT,
    DecisionType.EXPIRE,
)
"""In the order of every table and chart."""

Rows = QuerySet[PendingInterrupt]


@dataclass(slots=True)
class Shares:
    """How many decisions of each kind."""

    counts: dict[str, int] = field(
        default_factory=lambda: {kind.value: 0 for kind in KINDS}
    )

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    def add(self, decision: str, number: int) -> None:
        """Count some more of one kind."""
        self.counts[decision] = self.counts.get(decision, 0) + number


@dataclass(frozen=True, slots=True)
class Period:
    """The decisions that are counted."""

    rows: Rows
    since: datetime
    """Where the counting begins: later than asked for if there were too many."""
    capped: bool
    days: list[date]

    @classmethod
    def last(cls, rows: Rows, days: int, now: datetime, zone: tzinfo) -> Period:
        """Return the last days of somebody's calendar, today among them."""
        today = now.astimezone(zone).date()
        first = today - timedelta(days=days - 1)
        since = _begin(first, zone)
        made = rows.filter(decision__isnull=False)
        decided = made.filter(decided_at__gte=since)
        newest = decided.order_by("-decided_at").values_list("decided_at", flat=True)
        beyond = next(iter(newest[MOST : MOST + 1]), None)
        if beyond is not None:
            since = beyond
            decided = made.filter(decided_at__gt=since)
            first = since.astimezone(zone).date()
        span = (today - first).days + 1
        calendar = [first + timedelta(days=number) for number in range(span)]
        return cls(decided, since, beyond is not None, calendar)

    def by_day(self, zone: tzinfo) -> dict[date, Shares]:
        """Count by day of the calendar, days without any included."""
        bounds = [_begin(day, zone) for day in self.days]
        found = (
            self.rows.annotate(day=_number_of(bounds, 0, len(bounds)))
            .order_by()
            .values_list("day", "decision")
            .annotate(number=Count("*"))
        )
        made = {day: Shares() for day in self.days}
        for number, decision, count in found:
            made[self.days[number]].add(str(decision), count)
        return made

    def by_tool(self) -> dict[tuple[str, str], Shares]:
        """Count by tool and queue, most decisions first; a question's tool is empty."""
        found = (
            self.rows.order_by()
            .values_list("tool_name", "queue_id", "decision")
            .annotate(number=Count("*"))
        )
        made: dict[tuple[str, str], Shares] = {}
        for tool, queue, decision, count in found:
            made.setdefault((tool, str(queue)), Shares()).add(str(decision), count)
        return dict(sorted(made.items(), key=lambda one: (-one[1].total, one[0])))


def _begin(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time.min, tzinfo=zone)


def _number_of(bounds: Sequence[datetime], low: int, high: int) -> Any:
    """Return the expression for the number of a row's day.

    A tree of comparisons: exact in every zone, the clocks' changes included, on databases
    that know no zones, and a few comparisons a row.
    """
    if high - low <= 1:
        return Value(low, output_field=IntegerField())
    middle = (low + high) // 2
    return Case(
        When(decided_at__lt=bounds[middle], then=_number_of(bounds, low, middle)),
        default=_number_of(bounds, middle, high),
        output_field=IntegerField(),
    )


def by_queue(tools: dict[tuple[str, str], Shares]) -> dict[str, Shares]:
    """Add up what was counted by tool and queue, most decisions first."""
    made: dict[str, Shares] = {}
    for (_, queue), shares in tools.items():
        for decision, count in shares.counts.items():
            made.setdefault(queue, Shares()).add(decision, count)
    return dict(sorted(made.items(), key=lambda one: (-one[1].total, one[0])))

"""The numbers of the desk: what is open now, and how a period's calls were decided."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from django.db.models import QuerySet

from hitl_approvals.enums import InterruptStatus
from hitl_approvals.figures.counting import glance
from hitl_approvals.figures.decided import Period, Shares, by_queue
from hitl_approvals.figures.scope import Scope
from hitl_approvals.figures.timing import Times, Timing
from hitl_approvals.models import PendingInterrupt, db_now_plus
from hitl_approvals.selectors import OPEN
from hitl_approvals.types import Person

PERIODS = (7, 30, 90)
"""Days that one may ask for."""
DEFAULT_PERIOD = 30
AGES = (
    timedelta(),
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(hours=1),
    timedelta(hours=4),
)
"""Where each age of the chart begins; the last has no end."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is open at the moment. Counts end one beyond the cap of `counting`."""

    count: int
    in_doubt: int
    oldest: timedelta | None
    by_age: list[int]
    """As many as `AGES`."""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the page of numbers shows."""

    now: datetime
    asked: int
    """Days of the period, today among them."""
    since: datetime
    capped: bool
    """Whether there were more decisions than are counted, and `since` is later."""
    waiting: Waiting
    decided: Shares
    by_day: dict[date, Shares]
    by_tool: dict[tuple[str, str], Shares]
    by_queue: dict[str, Shares]
    timing: Timing
    queues: dict[str, str]
    """Titles of the queues that the person may see."""

    def times_of(self, tool: str, queue: str) -> Times:
        """Return the times of one tool in one queue."""
        return self.timing.by_tool.get((tool, queue)) or Times.of([])

    def times_in(self, queue: str) -> Times:
        """Return the times of one queue."""
        return self.timing.by_queue.get(queue) or Times.of([])


def report(user: Person, *, days: int, zone: tzinfo) -> Report:
    """Return the numbers that a person may see, in a fixed number of queries.

    Args:
        user: Whose queues are counted.
        days: The period, in days of the calendar of `zone`.
        zone: Where a day begins and ends.
    """
    scope = Scope.of(user)
    rows = scope.interrupts()
    now, waiting = _waiting(rows.filter(status__in=OPEN))
    period = Period.last(rows, days, now, zone)
    tools = period.by_tool()
    whole = Shares()
    for shares in tools.values():
        for decision, count in shares.counts.items():
            whole.add(decision, count)
    return Report(
        now=now,
        asked=days,
        since=period.since,
        capped=period.capped,
        waiting=waiting,
        decided=whole,
        by_day=period.by_day(zone),
        by_tool=tools,
        by_queue=by_queue(tools),
        timing=Timing.of(period.rows),
        queues=scope.queues,
    )


def _waiting(rows: QuerySet[PendingInterrupt]) -> tuple[datetime, Waiting]:
    ages = {}
    for number, begin in enumerate(AGES):
        aged = rows
        if begin:
            aged = aged.filter(requested_at__lte=db_now_plus(-begin))
        if number + 1 < len(AGES):
            aged = aged.filter(requested_at__gt=db_now_plus(-AGES[number + 1]))
        ages[str(number)] = aged
    doubt = rows.filter(status=InterruptStatus.IN_DOUBT)
    pending = rows.filter(status=InterruptStatus.PENDING)
    seen = glance(
        {"all": rows, "doubt": doubt, **ages},
        {"pending": (pending, "requested_at"), "doubt": (doubt, "requested_at")},
    )
    begun = [one for one in seen.firsts.values() if one is not None]
    return seen.now, Waiting(
        count=seen.counts["all"],
        in_doubt=seen.counts["doubt"],
        oldest=max(seen.now - min(begun), timedelta()) if begun else None,
        by_age=[seen.counts[name] for name in ages],
    )

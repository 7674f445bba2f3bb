"""Whether anything is stuck, at one glance: what waits, what is owed, who sweeps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import QuerySet

from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import DeliveryStatus, InterruptStatus, TurnStatus
from hitl_approvals.figures.counting import glance
from hitl_approvals.figures.scope import Scope
from hitl_approvals.models import (
    AgentTurn,
    DbNow,
    Delivery,
    DeliveryChannel,
    PendingInterrupt,
    SweepMark,
    db_now_plus,
)
from hitl_approvals.selectors import OPEN
from hitl_approvals.types import Person

RECENT = timedelta(days=1)
"""How long a delivery that was given up is spoken of."""
MOST_QUEUES = 20
"""Queues that are counted one by one."""


@dataclass(frozen=True, slots=True)
class InQueue:
    """How much is open in one queue."""

    slug: str
    title: str
    count: int


@dataclass(frozen=True, slots=True)
class Status:
    """The line. Counts end one beyond the cap of `counting`."""

    open: int
    oldest: timedelta | None
    """Age of the oldest open interrupt."""
    queues: list[InQueue]
    """Where something is open."""
    more_queues: bool
    """Whether there are queues that were not looked at."""
    in_doubt: int
    owed: int
    owed_for: timedelta | None
    """For how long the oldest owed run has been due."""
    attention: int
    """Turns that need it, of those that the person may see."""
    swept: timedelta | None
    """How long ago a sweeper came by; None if none ever did."""
    swept_late: bool
    overdue: int = 0
    """Deliveries that are due and not sent, though their endpoint is not left alone."""
    overdue_for: timedelta | None = None
    """For how long the oldest of them has been due."""
    failing: int = 0
    """Endpoints that fail again and again, and are left alone for a while."""
    given_up: int = 0
    """Deliveries that were given up in the last day."""


def late_after() -> timedelta:
    """Return how long a site may go without a sweeper before it is odd."""
    return max(6 * hitl_settings.sweep, timedelta(minutes=1))


def status(user: Person) -> Status | None:
    """Return the line for a person, in two queries; None for whoever may see no queue."""
    scope = Scope.of(user)
    if not scope.queues:
        return None
    rows = scope.interrupts().filter(status__in=OPEN)
    every = PendingInterrupt.objects.filter(status__in=OPEN)
    doubt = rows.filter(status=InterruptStatus.IN_DOUBT)
    pending = rows.filter(status=InterruptStatus.PENDING)
    owed = AgentTurn.objects.filter(
        status=TurnStatus.READY, blocked=False, next_run_at__lte=DbNow()
    )
    late = overdue_deliveries()
    # Whom the outside is told of is the matter of those who administer.
    told = {
        "overdue": late,
        "failing": DeliveryChannel.objects.filter(rests_until__isnull=False),
        "given up": recently_given_up(),
    }
    told = told if scope.everything else {}
    looked_at = list(scope.queues.items())[:MOST_QUEUES]
    seen = glance(
        {
            "open": rows,
            "doubt": doubt,
            "owed": owed,
            "attention": scope.turns().filter(status=TurnStatus.NEEDS_ATTENTION),
            **told,
            **{f"in {slug}": every.filter(queue=slug) for slug, _ in looked_at},
        },
        {
            "pending": (pending, "requested_at"),
            "doubt": (doubt, "requested_at"),
            "owed": (owed, "next_run_at"),
            "swept": (SweepMark.objects.all(), "-swept_at"),
            **({"overdue": (late, "next_attempt_at")} if told else {}),
        },
    )
    ages = {
        name: None if at is None else max(seen.now - at, timedelta())
        for name, at in seen.firsts.items()
    }
    waiting = [age for name in ("pending", "doubt") if (age := ages[name]) is not None]
    swept = ages["swept"]
    return Status(
        open=seen.counts["open"],
        oldest=max(waiting, default=None),
        queues=[
            InQueue(slug, title, count)
            for slug, title in looked_at
            if (count := seen.counts[f"in {slug}"])
        ],
        more_queues=len(scope.queues) > MOST_QUEUES,
        in_doubt=seen.counts["doubt"],
        owed=seen.counts["owed"],
        owed_for=ages["owed"],
        attention=seen.counts["attention"],
        swept=swept,
        swept_late=swept is None or swept > late_after(),
        overdue=seen.counts.get("overdue", 0),
        overdue_for=ages.get("overdue"),
        failing=seen.counts.get("failing", 0),
        given_up=seen.counts.get("given up", 0),
    )


def overdue_deliveries() -> QuerySet[Delivery]:
    """Return the deliveries that should have been sent by now.

    Not those that wait for an endpoint which is left alone because it fails.
    """
    since = db_now_plus(-late_after())
    alone = DeliveryChannel.objects.filter(rests_until__gt=since)
    due = Delivery.objects.filter(status=DeliveryStatus.OWED, next_attempt_at__lt=since)
    return due.exclude(channel__in=alone.values("pk"))


def recently_given_up() -> QuerySet[Delivery]:
    """Return the deliveries that nobody tries to send any more since a short while."""
    return Delivery.objects.filter(
        status=DeliveryStatus.GIVEN_UP, give_up_at__gt=db_now_plus(-RECENT)
    )

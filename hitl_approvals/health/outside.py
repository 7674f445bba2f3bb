"""Looks at the doors to the outside: what webhooks were not told, whom agents are stuck with."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any, TypeVar

from django.db import router
from django.db.models import Count, Max, Min, Model, QuerySet

from hitl_approvals.enums import DeliveryStatus
from hitl_approvals.figures.status import overdue_deliveries, recently_given_up
from hitl_approvals.health.lines import Level, Line, counted, spoken
from hitl_approvals.models import (
    AgentClient,
    DbNow,
    Delivery,
    DeliveryChannel,
    PendingInterrupt,
)
from hitl_approvals.selectors import OPEN
from hitl_approvals.services.client_limits import limit_of
from hitl_approvals.webhooks.endpoints import CHANNEL, endpoints

M = TypeVar("M", bound=Model)
SHOWN = 5
"""Endpoints or clients that are named, at most."""


def deliveries() -> Line:
    """Say what the outside should have been told by now, and what it never will be."""
    owed = _primary(Delivery).filter(status=DeliveryStatus.OWED).count()
    late = _by_channel(overdue_deliveries())
    lost = _by_channel(recently_given_up())
    late_for = _longest_overdue() if late else timedelta()
    facts = {
        "owed": owed,
        "overdue": dict(late),
        "oldest_seconds": late_for.total_seconds() if late else None,
        "given_up": dict(lost),
    }
    text = counted(owed, "delivery is owed", "deliveries are owed")
    if not late and not lost:
        return Line("deliveries", Level.OK, f"{text}, none overdue.", facts=facts)
    said, advice = [text], []
    if late:
        said.append(
            f"{late.total()} overdue, the oldest for {spoken(late_for)} ({_named(late)})"
        )
        advice.append(
            "Workers send them: see whether one runs that has these endpoints in its "
            "settings, and listens to the right Celery queue."
        )
    if lost:
        said.append(f"{lost.total()} given up in the last day ({_named(lost)})")
        advice.append(
            "Read the last error of each in the admin, and send again what matters."
        )
    return Line(
        "deliveries", Level.WARN, f"{', '.join(said)}.", " ".join(advice), facts
    )


def failing_endpoints() -> Line:
    """Say which endpoints are left alone because they fail, or are not known here."""
    failing = list(
        _primary(DeliveryChannel)
        .filter(rests_until__isnull=False)
        .order_by("-failures", "pk")
    )
    known = {one.channel for one in endpoints()}
    owed = _by_channel(_primary(Delivery).filter(status=DeliveryStatus.OWED))
    unknown = Counter({one: owed[one] for one in owed if one not in known})
    facts = {
        "failing": {one.name: one.failures for one in failing},
        "unknown": dict(unknown),
    }
    if not failing and not unknown:
        number = counted(len(known), "webhook endpoint", "webhook endpoints")
        text = f"{number}, none failing." if known else "No webhook endpoints."
        return Line("endpoints", Level.OK, text, facts=facts)
    said, advice = [], []
    if failing:
        first = failing[0]
        error = first.last_error.partition("\n")[0][:200] or "no error is recorded"
        names = ", ".join(
            f"`{_name(one.name)}` {one.failures} times" for one in failing[:SHOWN]
        )
        said.append(f"Failed in a row: {names}{_rest(len(failing))}. {_ended(error)}")
        advice.append("Nothing is lost while they are owed; they are tried again.")
    if unknown:
        number = counted(unknown.total(), "delivery is", "deliveries are")
        said.append(f"{number} owed to what no settings here name: {_named(unknown)}.")
        advice.append("After a day they are given up.")
    return Line("endpoints", Level.WARN, " ".join(said), " ".join(advice), facts)


def clients() -> Line:
    """Say which agent clients are revoked with open requests, or may ask for no more."""
    open_rows = (
        _primary(PendingInterrupt)
        .filter(status__in=OPEN, client__isnull=False)
        .order_by()
        .values_list("client")
        .annotate(count=Count("pk"))
    )
    counts = dict(open_rows)
    found = _primary(AgentClient).filter(pk__in=counts).order_by("name")
    gone: Counter[str] = Counter()
    stuck: Counter[str] = Counter()
    for one in found:
        most = limit_of(one, "open")
        if one.revoked_at is not None:
            gone[one.name] = counts[one.pk]
        elif most is not None and counts[one.pk] >= most:
            stuck[one.name] = counts[one.pk]
    facts = {"revoked": dict(gone), "full": dict(stuck)}
    if not gone and not stuck:
        total = sum(counts.values())
        text = counted(total, "request of an agent client", "requests of agent clients")
        verb = "waits" if total == 1 else "wait"
        return Line("clients", Level.OK, f"{text} {verb}.", facts=facts)
    said, advice = [], []
    if gone:
        number = counted(gone.total(), "request is", "requests are")
        said.append(f"{number} open of revoked agent clients: {_named(gone)}.")
        advice.append("Nobody fetches what is decided there; withdraw or settle them.")
    if stuck:
        said.append(f"As many open requests as they may have: {_named(stuck)}.")
        advice.append(
            "More are refused until somebody decides, or their limit is higher."
        )
    return Line("clients", Level.WARN, " ".join(said), " ".join(advice), facts)


def _by_channel(rows: QuerySet[Delivery]) -> Counter[str]:
    """Count deliveries by where they go."""
    primary = rows.using(router.db_for_write(Delivery)).order_by()
    counts = primary.values_list("channel").annotate(count=Count("pk"))
    return Counter(dict(counts))


def _longest_overdue() -> timedelta:
    rows = overdue_deliveries().using(router.db_for_write(Delivery))
    found: dict[str, Any] = rows.aggregate(
        oldest=Min("next_attempt_at"), now=Max(DbNow())
    )
    # Somebody may have sent the last of them since they were counted.
    return found["now"] - found["oldest"] if found["oldest"] else timedelta()


def _named(counts: Counter[str]) -> str:
    """Return the largest of some counts with their names."""
    said = ", ".join(
        f"`{_name(one)}` {number}" for one, number in counts.most_common(SHOWN)
    )
    return f"{said}{_rest(len(counts))}"


def _name(channel: str) -> str:
    return channel.removeprefix(CHANNEL)


def _rest(number: int) -> str:
    return f" and {number - SHOWN} more" if number > SHOWN else ""


def _ended(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _primary(model: type[M]) -> QuerySet[M]:
    # On a replica everything would look a little older than it is.
    return model._default_manager.using(router.db_for_write(model))  # noqa: SLF001

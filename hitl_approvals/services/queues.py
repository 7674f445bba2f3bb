"""Review queues: the default one, and where a tool's interrupts go."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import QuerySet

from hitl_approvals.models import DEFAULT_QUEUE, DbNow, ReviewQueue
from hitl_approvals.services import rows
from hitl_approvals.services.transactions import alias


def ensure_default(*, using: str | None = None) -> None:
    """Make the `default` queue unless it is there; only on the alias that is ours."""
    database = alias()
    if using is not None and using != database:
        return
    ReviewQueue.objects.using(database).get_or_create(pk=DEFAULT_QUEUE)


def read_now() -> datetime:
    """Return the database's time where no row of a turn can be asked for it."""
    default = ReviewQueue.objects.using(alias()).filter(pk=DEFAULT_QUEUE)
    now = default.annotate(db_now=DbNow()).values_list("db_now", flat=True).first()
    if now is not None:
        return now
    ensure_default()
    return read_now()


def _keys(found: QuerySet[ReviewQueue]) -> QuerySet[ReviewQueue, str]:
    return found.values_list("pk", flat=True)


def known(slugs: Iterable[str]) -> set[str]:
    """Return those of `slugs` that exist; the default queue is made if it is missing."""
    wanted = {*slugs, DEFAULT_QUEUE}
    found = set(rows.where(ReviewQueue, pk__in=sorted(wanted)).read(_keys))
    if DEFAULT_QUEUE not in found:
        ensure_default()
        found.add(DEFAULT_QUEUE)
    return found

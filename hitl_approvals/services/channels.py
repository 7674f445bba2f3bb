"""Leaves a channel alone that fails again and again, so that it costs the others nothing.

A channel that never failed has no row. One that failed `MOST_FAILURES` times in a row
rests; after that one attempt at a time tries whether it is back.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet

from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import DeliveryStatus
from hitl_approvals.models import DbNow, DeliveryChannel, db_now_plus
from hitl_approvals.services import rows
from hitl_approvals.services.transactions import alias, run_atomic

MOST_FAILURES = 5
"""Failures in a row after which a channel rests."""
LONGEST_REST = timedelta(minutes=5)
MARGIN = timedelta(seconds=5)
"""Added to an attempt's time limit before somebody else may try."""


def lease() -> timedelta:
    """Return for how long an attempt has its delivery, and a trial its channel."""
    return hitl_settings.webhook_timeout + MARGIN


def admit(channel: str) -> bool:
    """Tell whether an attempt may begin on a channel now.

    A resting channel admits one trial when its rest is over; whoever asks next finds it
    resting again. One that is well admits `WEBHOOK_CONCURRENCY` attempts, about.
    """
    state = _of(channel).first()
    if state is not None and state.rests_until is not None:
        return _try_again(channel)
    under_way = rows.deliveries().filter(
        channel=channel,
        lease_token__gt="",
        status=DeliveryStatus.OWED,
        next_attempt_at__gt=DbNow(),
    )
    return under_way.count() < hitl_settings.webhook_concurrency


def is_resting(channel: str) -> bool:
    """Tell whether a channel is to be left alone now."""
    return _of(channel).filter(rests_until__gt=DbNow()).exists()


def note_success(channel: str) -> None:
    """Forget the failures of a channel, if there were any. In the caller's transaction."""
    _of(channel).filter(failures__gt=0).update(failures=0, rests_until=None)


def note_failure(channel: str, error: str, *, leave_alone: timedelta | None) -> None:
    """Count a failure, and let the channel rest if there are many, or if it asks so.

    In the caller's transaction.
    """
    seen = _of(channel).values_list("failures", flat=True).first()
    changes: dict[str, Any] = {"failed_at": DbNow(), "last_error": error}
    rest = _rest((seen or 0) + 1, leave_alone)
    changes["rests_until"] = None if rest is None else db_now_plus(rest)
    if seen is None:
        row = DeliveryChannel(name=channel, failures=1, **changes)
        try:
            with transaction.atomic(using=alias()):
                row.save(using=alias(), force_insert=True)
        except IntegrityError:
            pass  # Two failed first at once; the other one's row is there now.
        else:
            return
    _of(channel).update(failures=F("failures") + 1, **changes)


def wake_up(channel: str) -> None:
    """Let the next attempt at a channel begin at once: a person says so."""
    _of(channel).filter(rests_until__isnull=False).update(rests_until=DbNow())


def _rest(failures: int, leave_alone: timedelta | None) -> timedelta | None:
    too_many = failures - MOST_FAILURES
    if too_many < 0:
        return leave_alone
    doubled: timedelta = hitl_settings.webhook_backoff * 2 ** min(too_many, 20)
    return max(min(doubled, LONGEST_REST), leave_alone or timedelta())


def _try_again(channel: str) -> bool:
    over = Q(rests_until__lte=DbNow())

    def work() -> bool:
        moved = _of(channel).filter(over).update(rests_until=db_now_plus(lease()))
        return moved == 1

    # Looked at first: where a database has one writer, nobody must ask for it in vain.
    return _of(channel).filter(over).exists() and run_atomic(work)


def _of(channel: str) -> QuerySet[DeliveryChannel]:
    return rows.channels().filter(pk=channel)

"""What time alone does to deliveries: announced again, given up, forgotten.

Each pass of the sweeper looks at a bounded number of rows, and sends nothing itself.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet

from hitl_approvals import dispatchers
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import DeliveryStatus
from hitl_approvals.models import DbNow, Delivery, db_now_plus
from hitl_approvals.services import deliveries, rows
from hitl_approvals.services.transactions import run_atomic
from hitl_approvals.webhooks.endpoints import endpoints

logger = logging.getLogger("hitl_approvals")

ORPHANED_AFTER = timedelta(days=1)
"""Long enough for every process of a site to get the settings that name an endpoint."""
OVER = (DeliveryStatus.DELIVERED, DeliveryStatus.GIVEN_UP)


def due_channels() -> list[str]:
    """Return the channels of this process's settings that somebody should look after."""
    return [one.channel for one in endpoints() if deliveries.is_due(one.channel)]


def announce() -> int:
    """Announce what is due, to whoever delivers; return to how many channels.

    One message each, so that one that hangs keeps no other from being announced.
    """
    if hitl_settings.dispatcher == "worker":
        return 0
    return sum(dispatchers.deliver([channel]) for channel in due_channels())


def give_up_overdue(*, limit: int) -> int:
    """Give up deliveries whose time is over, and those to endpoints that are gone."""
    late = _idle().filter(give_up_at__lte=DbNow())
    given_up = _give_up(late, "", limit)
    known = [one.channel for one in endpoints()]
    orphaned = _idle().filter(created_at__lte=db_now_plus(-ORPHANED_AFTER))
    error = "No endpoint of this name is in the settings any more."
    return given_up + _give_up(orphaned.exclude(channel__in=known), error, limit)


def forget_old(*, limit: int) -> int:
    """Delete the oldest deliveries that are over, once nobody will ask for them."""
    kept = hitl_settings.deliveries_kept
    if kept is None:
        return 0
    old = rows.deliveries().filter(status__in=OVER, created_at__lt=db_now_plus(-kept))
    found = list(old.order_by("created_at", "pk").values_list("pk", flat=True)[:limit])
    if not found:
        return 0

    def work() -> int:
        # Asked again: somebody may have sent one of them once more.
        return old.filter(pk__in=found).delete()[0]

    return run_atomic(work)


def _idle() -> QuerySet[Delivery]:
    """Return what is owed and not under way."""
    return rows.deliveries().filter(
        Q(lease_token="") | Q(next_attempt_at__lte=DbNow()), status=DeliveryStatus.OWED
    )


def _give_up(found: QuerySet[Delivery], error: str, limit: int) -> int:
    chosen = list(found.order_by("give_up_at").values_list("pk", flat=True)[:limit])
    if not chosen:
        return 0
    changes: dict[str, Any] = {"last_error": error} if error else {}

    def work() -> int:
        return found.filter(pk__in=chosen).update(
            status=DeliveryStatus.GIVEN_UP,
            give_up_at=DbNow(),
            next_attempt_at=None,
            lease_token="",
            **changes,
        )

    moved = run_atomic(work)
    if moved:
        logger.error(
            "%s deliveries were given up: %s",
            moved,
            error or "their time is over; see the last error of each.",
        )
    return moved

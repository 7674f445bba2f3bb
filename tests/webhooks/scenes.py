"""What happens in a test: requests of a remote agent, turns, and what is owed for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hitl_approvals.models import Delivery, DeliveryChannel, db_now_plus
from tests.support import remote

CHANNEL = "webhook:crm"
LATER = db_now_plus(timedelta(minutes=10))


def owed(count: int = 1, **changes: Any) -> list[Delivery]:
    """Raise so many requests; return what the endpoint is owed for them, oldest first."""
    for _ in range(count):
        remote.ask(**changes)
    return deliveries()


def deliveries(**conditions: Any) -> list[Delivery]:
    return list(Delivery.objects.filter(**conditions).order_by("created_at", "pk"))


def the_delivery(**conditions: Any) -> Delivery:
    return Delivery.objects.get(**conditions)


def make_due(*found: Delivery) -> None:
    """Let the wait of these deliveries be over, or of all that are owed."""
    chosen = Delivery.objects.filter(status="owed")
    if found:
        chosen = chosen.filter(pk__in=[one.pk for one in found])
    chosen.update(next_attempt_at=remote.PAST)


def wake_channel() -> None:
    """Let the rest of the channel be over."""
    DeliveryChannel.objects.update(rests_until=remote.PAST)

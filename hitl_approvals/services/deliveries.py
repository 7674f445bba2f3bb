"""Sends what webhooks are owed: claim a row, send outside of any transaction, record.

At least once: whoever dies between the two is followed by somebody who sends the same
message again, under the same id.
"""

from __future__ import annotations

import logging
import random
import secrets
import threading
import time
from datetime import timedelta
from typing import Any

from django.db.models import F, QuerySet

from hitl_approvals import canonical
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import DeliveryStatus
from hitl_approvals.models import DbNow, Delivery, db_now_plus
from hitl_approvals.services import channels, rows
from hitl_approvals.services.transactions import (
    refuse_inside_transaction,
    run_atomic,
)
from hitl_approvals.text import cleaned
from hitl_approvals.webhooks.endpoints import Endpoint, endpoint_of
from hitl_approvals.webhooks.sender import MOST_ERROR, Answer, send

logger = logging.getLogger("hitl_approvals")

GROWTH = 4
"""Each wait may be so many times the one before it."""
SHORTEST_WAIT = timedelta(seconds=1)
CANDIDATES = 10
"""How many rows whoever wants one looks at, in case others take the first ones."""
SECONDS = 20.0
"""How long one call of `drain` goes on taking deliveries."""


def owed_to(channel: str) -> QuerySet[Delivery]:
    """Return the deliveries of a channel whose next attempt is due."""
    return rows.deliveries().filter(
        channel=channel,
        status=DeliveryStatus.OWED,
        next_attempt_at__lte=DbNow(),
        give_up_at__gt=DbNow(),
    )


def is_due(channel: str) -> bool:
    """Tell whether somebody should look after a channel now."""
    return owed_to(channel).exists() and not channels.is_resting(channel)


def drain(
    channel: str,
    *,
    seconds: float = SECONDS,
    stop: threading.Event | None = None,
) -> int:
    """Send what one channel is owed, one after the other, while there is time.

    A channel that this process's settings do not name is left to others: while a site is
    deployed, some know an endpoint that others do not know yet.

    Args:
        channel: `webhook:` and the name of the endpoint.
        seconds: No attempt begins after that.
        stop: Ends it after the attempt that is under way.

    Returns:
        How many attempts were made.

    Raises:
        UnsafeContext: A transaction is open here.
    """
    refuse_inside_transaction("deliveries.drain")
    ends = time.monotonic() + seconds
    attempts = 0
    while time.monotonic() < ends and not (stop is not None and stop.is_set()):
        endpoint = endpoint_of(channel)
        if endpoint is None or not owed_to(channel).exists():
            break
        if not channels.admit(channel):
            break
        claimed = _claim(channel)
        if claimed is None:
            break
        answer = attempt(claimed, endpoint)
        attempts += 1
        if answer.status is None and answer.error:
            break  # Nobody is there, so whoever waits behind this goes first.
    return attempts


def _claim(channel: str) -> Delivery | None:
    """Take the delivery that has been due for longest, unless others take them all."""
    found = owed_to(channel).order_by("next_attempt_at", "pk")[:CANDIDATES]
    return next((one for one in found if take(one)), None)


def take(delivery: Delivery) -> bool:
    """Lease a delivery to this process for one attempt; False if it is not due now."""
    token = secrets.token_hex(16)

    def work() -> int:
        return (
            owed_to(delivery.channel)
            .filter(pk=delivery.pk)
            .update(
                attempts=F("attempts") + 1,
                next_attempt_at=db_now_plus(channels.lease()),
                lease_token=token,
            )
        )

    if run_atomic(work) != 1:
        return False
    delivery.attempts += 1
    delivery.lease_token = token
    return True


def attempt(delivery: Delivery, endpoint: Endpoint) -> Answer:
    """Make the one attempt that the lease is for, and record what came of it."""
    answer = _sent(delivery, endpoint)
    if not _record(delivery, answer):
        logger.warning(
            "Delivery %s was taken from this process before its answer came: %s",
            delivery.pk,
            answer.error or "delivered",
        )
    elif answer.error:
        logger.info(
            "Delivery %s to %s failed (attempt %s): %s",
            delivery.pk,
            delivery.channel,
            delivery.attempts,
            answer.error,
        )
    return answer


def _sent(delivery: Delivery, endpoint: Endpoint) -> Answer:
    body = canonical.dumps(delivery.body, max_bytes=None, max_depth=None)
    try:
        return send(endpoint, str(delivery.pk), body)
    except Exception as error:
        # Ours, not the receiver's. The row must not wait for its lease to end each time.
        logger.exception("Delivery %s could not be sent.", delivery.pk)
        text = f"It could not be sent: {type(error).__name__}: {error}"
        return Answer(error=cleaned(text, MOST_ERROR))


def _record(delivery: Delivery, answer: Answer) -> bool:
    """Write what came of an attempt, if the row is still this attempt's."""
    # The answer is the endpoint's: `Retry-After` holds for whatever goes there.
    asked = (
        None if answer.retry_after is None else timedelta(seconds=answer.retry_after)
    )
    asked = asked and min(asked, hitl_settings.webhook_backoff_max)
    changes = _changes(delivery, answer, asked)

    def work() -> bool:
        moved = (
            rows.deliveries()
            .filter(
                pk=delivery.pk,
                status=DeliveryStatus.OWED,
                lease_token=delivery.lease_token,
            )
            .update(
                last_status=answer.status,
                last_error=answer.error,
                lease_token="",
                **changes,
            )
        )
        if answer.delivered:
            channels.note_success(delivery.channel)
        else:
            channels.note_failure(delivery.channel, answer.error, leave_alone=asked)
        return moved == 1

    return run_atomic(work)


def _changes(
    delivery: Delivery, answer: Answer, asked: timedelta | None
) -> dict[str, Any]:
    if answer.delivered:
        over = DeliveryStatus.DELIVERED
        return {"status": over, "delivered_at": DbNow(), "next_attempt_at": None}
    if answer.gone:
        over = DeliveryStatus.GIVEN_UP
        return {"status": over, "give_up_at": DbNow(), "next_attempt_at": None}
    wait = max(backoff(delivery.attempts), asked or timedelta())
    return {"next_attempt_at": db_now_plus(wait)}


def backoff(attempts: int) -> timedelta:
    """Return how long to wait after so many attempts: anything up to the longest wait.

    Deliveries that failed together must not all come back together.
    """
    grown: timedelta = hitl_settings.webhook_backoff * GROWTH ** min(attempts - 1, 20)
    longest = min(grown, hitl_settings.webhook_backoff_max)
    wait = longest * random.random()  # noqa: S311  spreads load, no secret
    return max(wait, SHORTEST_WAIT)

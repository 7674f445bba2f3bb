"""A person sends a message to the outside once more, or gives it up."""

from __future__ import annotations

import logging
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Q

from hitl_approvals import permissions
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import DeliveryStatus
from hitl_approvals.exceptions import NotFound, TransitionNotAllowed
from hitl_approvals.models import DbNow, Delivery, db_now_plus
from hitl_approvals.services import channels, rows
from hitl_approvals.services.outbox import announce
from hitl_approvals.services.transactions import run_atomic
from hitl_approvals.text import cleaned
from hitl_approvals.types import Person
from hitl_approvals.webhooks.endpoints import endpoint_of
from hitl_approvals.webhooks.sender import MOST_ERROR

logger = logging.getLogger("hitl_approvals")


def resend_delivery(delivery_id: UUID | str, *, by: Person | None) -> None:
    """Let a delivery be sent at once, whether it was delivered, given up or waits.

    It keeps its id and its text, so a receiver that has seen it knows it again. Its
    attempts begin anew, and so does the time until it is given up. Joins the caller's
    transaction.

    Args:
        delivery_id: The delivery.
        by: Who asks, with the right to administer. None is trusted code.

    Raises:
        NotFound: There is no such delivery.
        ReviewerNotAllowed: The right is missing.
        TransitionNotAllowed: It is being sent right now, or its endpoint is gone.
    """
    permissions.require_administer(by)
    row = _read(delivery_id)
    if endpoint_of(row.channel) is None:
        raise TransitionNotAllowed(
            f"The settings have no endpoint for {row.channel}, so it cannot be sent."
        )

    def work() -> None:
        moved = (
            rows.deliveries()
            .filter(
                Q(lease_token="") | Q(next_attempt_at__lte=DbNow()),
                pk=row.pk,
                status=row.status,
            )
            .update(
                status=DeliveryStatus.OWED,
                attempts=0,
                next_attempt_at=DbNow(),
                give_up_at=db_now_plus(hitl_settings.webhook_give_up_after),
                delivered_at=None,
                lease_token="",
            )
        )
        if moved != 1:
            raise TransitionNotAllowed("It is being sent right now; look at it again.")
        channels.wake_up(row.channel)

    run_atomic(work)
    logger.info("Delivery %s is sent once more; %s asked for it.", row.pk, _name(by))
    announce([row.channel])


def give_up_delivery(
    delivery_id: UUID | str, *, by: Person | None, reason: str
) -> None:
    """Let no further attempt begin at a delivery that is owed.

    An attempt that is under way may still arrive. Joins the caller's transaction.

    Args:
        delivery_id: The delivery.
        by: Who asks, with the right to administer. None is trusted code.
        reason: Why, for whoever reads the row later.

    Raises:
        NotFound: There is no such delivery.
        ReviewerNotAllowed: The right is missing.
        TransitionNotAllowed: It is not owed any more.
    """
    permissions.require_administer(by)
    row = _read(delivery_id)
    why = f": {reason.strip()}" if reason.strip() else "."
    error = cleaned(f"Given up by {_name(by)}{why}", MOST_ERROR)

    def work() -> None:
        moved = (
            rows.deliveries()
            .filter(pk=row.pk, status=DeliveryStatus.OWED)
            .update(
                status=DeliveryStatus.GIVEN_UP,
                next_attempt_at=None,
                give_up_at=DbNow(),
                lease_token="",
                last_error=error,
            )
        )
        if moved != 1:
            raise TransitionNotAllowed("Only a delivery that is owed can be given up.")

    run_atomic(work)
    logger.info("Delivery %s was given up by %s.", row.pk, _name(by))


def _read(delivery_id: UUID | str) -> Delivery:
    try:
        row = rows.deliveries().filter(pk=delivery_id).first()
    except (ValidationError, ValueError):
        row = None
    if row is None:
        raise NotFound("There is no such delivery.")
    return row


def _name(by: Person | None) -> str:
    return "the system" if by is None else by.get_username()

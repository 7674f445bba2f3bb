"""The rows. `from hitl_approvals.models import ...` is the one public path to them."""

from __future__ import annotations

from hitl_approvals.models.events import InterruptEvent
from hitl_approvals.models.expressions import DbNow, db_now_plus
from hitl_approvals.models.fields import CanonicalJSONField
from hitl_approvals.models.interrupts import PendingInterrupt
from hitl_approvals.models.marks import SweepMark
from hitl_approvals.models.queues import DEFAULT_QUEUE, ReviewQueue
from hitl_approvals.models.remote import (
    AgentClient,
    Delivery,
    DeliveryChannel,
    IdempotencyRecord,
)
from hitl_approvals.models.steps import TurnStep
from hitl_approvals.models.turns import AgentTurn

__all__ = [
    "DEFAULT_QUEUE",
    "AgentClient",
    "AgentTurn",
    "CanonicalJSONField",
    "DbNow",
    "Delivery",
    "DeliveryChannel",
    "IdempotencyRecord",
    "InterruptEvent",
    "PendingInterrupt",
    "ReviewQueue",
    "SweepMark",
    "TurnStep",
    "db_now_plus",
]

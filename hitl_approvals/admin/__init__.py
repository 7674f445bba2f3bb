"""The review desk in Django's admin. A door: it reads, and calls one service a request.

Importing it registers with `django.contrib.admin.site`, as autodiscovery does. A site of
one's own registers the classes itself: `my_site.register(PendingInterrupt,
PendingInterruptAdmin)`. To add to what the desk shows, subclass `PendingInterruptAdmin`.
"""

from __future__ import annotations

from hitl_approvals.admin.clients import AgentClientAdmin
from hitl_approvals.admin.deliveries import DeliveryAdmin
from hitl_approvals.admin.events import InterruptEventAdmin
from hitl_approvals.admin.interrupts import PendingInterruptAdmin
from hitl_approvals.admin.queues import ReviewQueueAdmin
from hitl_approvals.admin.sections import Section
from hitl_approvals.admin.turns import AgentTurnAdmin

__all__ = [
    "AgentClientAdmin",
    "AgentTurnAdmin",
    "DeliveryAdmin",
    "InterruptEventAdmin",
    "PendingInterruptAdmin",
    "ReviewQueueAdmin",
    "Section",
]

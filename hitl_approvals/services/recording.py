"""The one place that inserts audit events, and whatever is owed because of them."""

from __future__ import annotations

from collections.abc import Sequence

from hitl_approvals.models import InterruptEvent
from hitl_approvals.services import outbox, rows, telling


def record_event(event: InterruptEvent) -> None:
    """Insert one event, in the transaction of the transition that it tells of."""
    record_events([event])


def record_events(events: Sequence[InterruptEvent]) -> None:
    """Insert events, in the transaction of the transitions that they tell of.

    To be called after the rows were moved: what is owed to the outside is made from the
    rows as they stand then.
    """
    if not events:
        return
    rows.insert(events)
    outbox.owe(events)
    telling.tell_after_commit(events)

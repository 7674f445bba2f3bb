"""Announces, after the commit, that a run may be owed."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from hitl_approvals import dispatchers
from hitl_approvals.services.transactions import alias


def wake(turn_id: UUID) -> None:
    """Announce, after the commit, that a run may be owed. Losing this costs a sweep."""

    def announce() -> None:
        dispatchers.wake(turn_id)

    transaction.on_commit(announce, using=alias(), robust=True)

"""Reads one interrupt as services need it. Writes nothing."""

from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet

from hitl_approvals.exceptions import InterruptNotFound
from hitl_approvals.models import AgentTurn, DbNow, PendingInterrupt
from hitl_approvals.services import rows

M = TypeVar("M", bound=Model)

OF_ITS_TURN = ("id", "requested_by", "status")
"""What is asked of an interrupt's turn here; its state alone may be megabytes."""


def with_db_now(found: QuerySet[M]) -> QuerySet[M]:
    """Ask for the database's time beside each row, as `db_now`."""
    timed: Any = found.annotate(db_now=DbNow())
    asked: QuerySet[M] = timed
    return asked


def _with_all(found: QuerySet[PendingInterrupt]) -> QuerySet[PendingInterrupt]:
    unread = [
        f"turn__{field.name}"
        for field in AgentTurn._meta.concrete_fields  # noqa: SLF001  Django's own
        if field.name not in OF_ITS_TURN
    ]
    return with_db_now(found).select_related("turn", "queue").defer(*unread)


def read(interrupt_id: UUID | str) -> PendingInterrupt:
    """Return an interrupt with the database's time, its queue and its turn.

    Of the turn, what `OF_ITS_TURN` names is read; the rest would be a query of its own.

    Raises:
        InterruptNotFound: There is no such interrupt.
    """
    try:
        row = rows.where(PendingInterrupt, pk=interrupt_id).first(_with_all)
    except (ValidationError, ValueError):
        row = None
    if row is None:
        raise InterruptNotFound
    found: PendingInterrupt = row
    return found


def turn(turn_id: UUID) -> AgentTurn:
    """Return a turn that is there as it is now."""
    found: AgentTurn = rows.where(AgentTurn, pk=turn_id).read()[0]
    return found

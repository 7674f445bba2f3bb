"""Querysets on the one alias that our tables share, never on a replica."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.db import connections
from django.db.models import Model, QuerySet

from hitl_approvals import statements
from hitl_approvals.models import (
    AgentTurn,
    Delivery,
    DeliveryChannel,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from hitl_approvals.services.transactions import alias
from hitl_approvals.statements import Condition, Where

M = TypeVar("M", bound=Model)


def where(model: type[M], *conditions: Condition, **lookups: Any) -> Where[M]:
    """Return rows for a statement that is compiled once: what every call needs."""
    return statements.where(alias(), model, *conditions, **lookups)


def insert(new: Sequence[Model]) -> None:
    """Insert rows of one model, by a statement that is compiled once."""
    statements.insert(alias(), new)


def turns() -> QuerySet[AgentTurn]:
    return AgentTurn.objects.using(alias())


def interrupts() -> QuerySet[PendingInterrupt]:
    return PendingInterrupt.objects.using(alias())


def steps() -> QuerySet[TurnStep]:
    return TurnStep.objects.using(alias())


def events() -> QuerySet[InterruptEvent]:
    return InterruptEvent.objects.using(alias())


def deliveries() -> QuerySet[Delivery]:
    return Delivery.objects.using(alias())


def channels() -> QuerySet[DeliveryChannel]:
    return DeliveryChannel.objects.using(alias())


def take(rows: QuerySet[Any]) -> bool:
    """Lock one row unless somebody holds it; for those who must never wait.

    To be called inside a transaction. A row that another process holds is as good as
    gone for this pass. Where the database cannot skip locked rows this does nothing and
    the next statement may wait for SQLite's one writer.
    """
    if not connections[alias()].features.has_select_for_update_skip_locked:
        return True
    found = rows.select_for_update(skip_locked=True).values_list("pk", flat=True)
    return found.first() is not None

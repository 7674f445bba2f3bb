"""Querysets on the one alias that our tables share, never on a replica."""

from __future__ import annotations

from django.db.models import QuerySet

from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from hitl_approvals.services.transactions import alias


def turns() -> QuerySet[AgentTurn]:
    return AgentTurn.objects.using(alias())


def interrupts() -> QuerySet[PendingInterrupt]:
    return PendingInterrupt.objects.using(alias())


def steps() -> QuerySet[TurnStep]:
    return TurnStep.objects.using(alias())


def events() -> QuerySet[InterruptEvent]:
    return InterruptEvent.objects.using(alias())

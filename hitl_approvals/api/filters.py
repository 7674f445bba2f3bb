"""Which interrupts a list shows. What cannot be read is refused, never guessed."""

from __future__ import annotations

from datetime import UTC
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime
from django_filters import rest_framework as filters

from hitl_approvals.enums import DecisionType, InterruptStatus
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.selectors import OPEN, held, unheld

MAX_SEARCH = 200
MAX_WORDS = 8
SEARCHED = ("tool_name", "agent", "thread_id", "tool_call_id", "reason")
"""Not the arguments: a search would tell what is in a hidden one."""


class MomentField(forms.CharField):
    """A time with its zone; without one it would mean another moment on each site."""

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if not text:
            return None
        try:
            moment = parse_datetime(text)
            if moment is None or moment.tzinfo is None:
                raise ValueError("no time, or no zone")
            return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            raise forms.ValidationError(
                "Give a time with its zone, as in 2026-01-31T09:30:00Z."
            ) from None


class MomentFilter(filters.Filter):  # type: ignore[misc]  # django-filter has no types
    """Compares a column with a moment."""

    field_class = MomentField


class InterruptFilter(filters.FilterSet):  # type: ignore[misc]  # as above
    """The query parameters of the list of interrupts."""

    status = filters.MultipleChoiceFilter(choices=InterruptStatus.choices)
    open = filters.ChoiceFilter(
        choices=[("true", "true"), ("false", "false")], method="filter_open"
    )
    decision = filters.MultipleChoiceFilter(choices=DecisionType.choices)
    queue = filters.CharFilter(field_name="queue_id")
    agent = filters.CharFilter()
    tool = filters.CharFilter(field_name="tool_name")
    thread = filters.CharFilter(field_name="thread_id")
    turn = filters.UUIDFilter(field_name="turn_id")
    assignee = filters.ChoiceFilter(
        choices=[("me", "me"), ("none", "none")], method="filter_assignee"
    )
    requested_after = MomentFilter(field_name="requested_at", lookup_expr="gte")
    requested_before = MomentFilter(field_name="requested_at", lookup_expr="lt")
    search = filters.CharFilter(method="filter_search", max_length=MAX_SEARCH)

    def filter_open(
        self, rows: QuerySet[PendingInterrupt], name: str, value: str
    ) -> QuerySet[PendingInterrupt]:
        """Keep what waits for a person, or what does not."""
        waiting = Q(status__in=OPEN)
        return rows.filter(waiting if value == "true" else ~waiting)

    def filter_assignee(
        self, rows: QuerySet[PendingInterrupt], name: str, value: str
    ) -> QuerySet[PendingInterrupt]:
        """Keep what is open and in one's own hands, or in nobody's."""
        if value == "me":
            return rows.filter(held(), assignee=self.request.user.pk)
        return rows.filter(unheld())

    def filter_search(
        self, rows: QuerySet[PendingInterrupt], name: str, value: str
    ) -> QuerySet[PendingInterrupt]:
        """Keep the rows that hold every word, or the one whose id it is."""
        for word in value.split()[:MAX_WORDS]:
            found = Q()
            for column in SEARCHED:
                found |= Q(**{f"{column}__icontains": word})
            if (named := _uuid(word)) is not None:
                found |= Q(pk=named) | Q(turn=named)
            rows = rows.filter(found)
        return rows


def _uuid(word: str) -> UUID | None:
    try:
        return UUID(word)
    except ValueError:
        return None

"""Which rows a list shows. What cannot be read is refused, never guessed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any, ClassVar

from django import forms
from django.core.validators import ProhibitNullCharactersValidator
from django.db.models import Case, F, Q, QuerySet, Value, When
from django.db.models.functions import StrIndex
from django.db.models.lookups import GreaterThan
from django.utils.dateparse import parse_datetime
from django_filters import rest_framework as filters

from hitl_approvals import canonical
from hitl_approvals.api.errors import BadRequest
from hitl_approvals.api.pagination import KEPT
from hitl_approvals.enums import (
    DecisionType,
    InterruptKind,
    InterruptStatus,
    TurnStatus,
)
from hitl_approvals.models import AgentTurn, PendingInterrupt
from hitl_approvals.selectors import OPEN, held, search, unheld
from hitl_approvals.types import AgentPrincipal

MAX_SEARCH = 200
MOST_SORTED = 2000
"""Rows that a search may find and that are then put in order."""
MOST_VALUES = 20
"""Values of one parameter that may be given several times."""


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


class TextsField(forms.Field):
    """Texts of a parameter that may be given several times; empty ones count as none."""

    widget = forms.MultipleHiddenInput

    def clean(self, value: Any) -> list[str]:
        texts = [one for one in value or () if one]
        if len(texts) > MOST_VALUES:
            raise forms.ValidationError(f"Give at most {MOST_VALUES}.")
        for one in texts:
            ProhibitNullCharactersValidator()(one)
        return texts


class TextsFilter(filters.Filter):  # type: ignore[misc]  # as above
    """Keeps the rows whose column is one of the texts."""

    field_class = TextsField

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("lookup_expr", "in")
        super().__init__(*args, **kwargs)


class RowFilter(filters.FilterSet):  # type: ignore[misc]  # as above
    """Keeps apart the conditions that an index serves and those that none does.

    The latter become an annotation, by which the paginator looks at a bounded number of
    rows for each page.
    """

    UNINDEXED: ClassVar[tuple[str, ...]] = ()

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows; `KEPT` tells which of them are meant, if not all are."""
        rows: QuerySet[Any] = queryset
        looked_at = Q()
        for name, value in self.form.cleaned_data.items():
            given = value not in (None, "", [])
            if given and self.is_unindexed(name, value, rows):
                looked_at &= self.condition(name, value)
            else:
                rows = self.filters[name].filter(rows, value)
        if not looked_at:
            return rows
        kept = Case(When(looked_at, then=Value(1)), default=Value(0))
        found: QuerySet[Any] = rows.annotate(**{KEPT: kept})
        return found

    def is_unindexed(self, name: str, value: Any, rows: QuerySet[Any]) -> bool:
        """Tell whether no index serves a condition in the order that was asked for."""
        return name in self.UNINDEXED

    def condition(self, name: str, value: Any) -> Q:
        """Return a condition that no index serves."""
        each = self.filters[name]
        lookup = "in" if isinstance(value, list) else each.lookup_expr
        return Q(**{f"{each.field_name}__{lookup}": value})


class InterruptFilter(RowFilter):
    """The query parameters of the list of interrupts."""

    UNINDEXED = (
        "decision",
        "tag",
        "kind",
        "priority",
        "expires_after",
        "expires_before",
        "decided_after",
        "decided_before",
    )

    status = filters.MultipleChoiceFilter(choices=InterruptStatus.choices)
    open = filters.ChoiceFilter(
        choices=[("true", "true"), ("false", "false")], method="filter_open"
    )
    decision = filters.MultipleChoiceFilter(choices=DecisionType.choices)
    queue = TextsFilter(field_name="queue_id")
    agent = TextsFilter()
    tool = TextsFilter(field_name="tool_name")
    tag = TextsFilter(field_name="tags")
    kind = filters.ChoiceFilter(choices=InterruptKind.choices)
    priority = filters.NumberFilter(
        field_name="priority",
        lookup_expr="gte",
        min_value=-32768,
        max_value=32767,
        decimal_places=0,
    )
    client = filters.CharFilter(field_name="client__name")
    thread = filters.CharFilter(field_name="thread_id")
    turn = filters.UUIDFilter(field_name="turn_id")
    assignee = filters.ChoiceFilter(
        choices=[("me", "me"), ("none", "none")], method="filter_assignee"
    )
    requested_after = MomentFilter(field_name="requested_at", lookup_expr="gte")
    requested_before = MomentFilter(field_name="requested_at", lookup_expr="lt")
    expires_after = MomentFilter(field_name="expires_at", lookup_expr="gte")
    expires_before = MomentFilter(field_name="expires_at", lookup_expr="lt")
    decided_after = MomentFilter(field_name="decided_at", lookup_expr="gte")
    decided_before = MomentFilter(field_name="decided_at", lookup_expr="lt")
    search = filters.CharFilter(method="filter_search", max_length=MAX_SEARCH)

    def is_unindexed(self, name: str, value: Any, rows: QuerySet[Any]) -> bool:
        """Tell it of the times, too: the one that the list is ordered by has an index.

        And of a search that finds more than can be sorted: those are met soon on the way
        along the list.
        """
        if name == "search":
            found = rows.filter(search(value)).order_by().values_list("pk")
            return len(found[: MOST_SORTED + 1]) > MOST_SORTED
        column = self.data.get("ordering", "").removeprefix("-")
        if column and self.filters[name].field_name == column:
            return False
        return super().is_unindexed(name, value, rows)

    def condition(self, name: str, value: Any) -> Q:
        """Return a condition that no index serves."""
        if name == "search":
            return search(value)
        return _tagged(value) if name == "tag" else super().condition(name, value)

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
            by = self.request.user
            if isinstance(by, AgentPrincipal):
                return rows.none()  # people alone hold what is to be decided
            return rows.filter(held(), assignee=by.pk)
        return rows.filter(unheld())

    def filter_search(
        self, rows: QuerySet[PendingInterrupt], name: str, value: str
    ) -> QuerySet[PendingInterrupt]:
        """Keep what the desk's search finds."""
        return rows.filter(search(value))


class TurnFilter(RowFilter):
    """The query parameters of the list of turns."""

    UNINDEXED = ("agent",)

    status = filters.MultipleChoiceFilter(choices=TurnStatus.choices)
    agent = TextsFilter()
    thread = filters.CharFilter(method="filter_thread", max_length=255)
    requested_by = filters.ChoiceFilter(
        choices=[("me", "me")], method="filter_requested_by"
    )
    parent = filters.UUIDFilter(field_name="parent_id")
    started_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    started_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    def filter_thread(
        self, rows: QuerySet[AgentTurn], name: str, value: str
    ) -> QuerySet[AgentTurn]:
        """Keep the turns of a conversation, which are found by its hash."""
        key = canonical.key_digest("thread", value)
        return rows.filter(thread_key=key, thread_id=value)

    def filter_requested_by(
        self, rows: QuerySet[AgentTurn], name: str, value: str
    ) -> QuerySet[AgentTurn]:
        """Keep what one started oneself."""
        return rows.filter(requested_by=self.request.user.pk)


def _tagged(tags: Sequence[str]) -> Q:
    """Return the condition for rows that have each of these tags, to the letter.

    The tags stand in a column as canonical text, `["a","b"]`. Two comparisons: one of
    them ignores case on SQLite, the other on MariaDB.
    """
    found = Q()
    for tag in tags:
        quoted = canonical.dumps(tag)
        places = [f"{a}{quoted}{b}" for a in "[," for b in ",]"]
        if tag[0] in ",]":
            # After a closing quote this would look like the beginning of a tag.
            raise BadRequest(
                "tag: A tag that begins so cannot be searched for.",
                errors=[
                    {"loc": "tag", "message": "It begins with a comma or bracket."}
                ],
            )
        one = Q()
        for place in places:
            exact = StrIndex(F("tags"), Value(place))
            one |= Q(tags__contains=place) & Q(GreaterThan(exact, 0))
        found &= one
    return found

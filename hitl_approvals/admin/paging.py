"""Counts and pages whose cost does not grow with the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.utils.formats import number_format
from django.utils.functional import cached_property

M = TypeVar("M", bound=Model)

CAP = 1000
"""Rows that are counted; beyond, a count reads `1,000+`."""
PAGE = 50


def count(rows: QuerySet[Any]) -> int:
    """Count rows, reading no more than one beyond the cap."""
    return rows.order_by()[: CAP + 1].count()


def counted(number: int) -> str:
    """Return a bounded count as text."""
    shown = number_format(min(number, CAP), force_grouping=True)
    return f"{shown}+" if number > CAP else shown


def take(parts: Sequence[QuerySet[M]], start: int, size: int) -> list[M]:
    """Return a slice of several querysets laid end to end.

    Each of them can walk an index of its own, which one ORDER BY over all could not.
    """
    found: list[M] = []
    for part in parts:
        chunk = list(part[start : start + size - len(found)])
        found += chunk
        if len(found) >= size:
            break
        if chunk:
            start = 0
        elif start:
            start -= part.order_by()[:start].count()
    return found


if TYPE_CHECKING:
    _Paginator = Paginator[Any]
else:
    _Paginator = Paginator


class CappedPaginator(_Paginator):
    """Counts to the cap and no further: no page asks for the whole table's size."""

    @cached_property
    def count(self) -> int:
        """How many rows there are, at most one beyond the cap."""
        rows = self.object_list
        if isinstance(rows, QuerySet):
            return count(rows)
        return len(rows)

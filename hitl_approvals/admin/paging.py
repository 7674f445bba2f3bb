"""Counts and pages whose cost does not grow with the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.utils.formats import number_format
from django.utils.functional import cached_property

M = TypeVar("M", bound=Model)
Keys = QuerySet[Any, tuple[Any, UUID]]

CAP = 1000
"""Rows that are counted; beyond, a count reads `1,000+`."""
PAGE = 50
_LONGEST = 100


def count(rows: QuerySet[Any]) -> int:
    """Count rows, reading no more than one beyond the cap."""
    return rows.order_by()[: CAP + 1].count()


def counted(number: int) -> str:
    """Return a bounded count as text."""
    shown = number_format(min(number, CAP), force_grouping=True)
    return f"{shown}+" if number > CAP else shown


def tabs(
    labels: Mapping[str, str],
    current: str,
    address: Callable[[str], str],
    rows: Callable[[str], QuerySet[Any]],
) -> list[dict[str, Any]]:
    """Return the views of a list as tabs, each with its bounded count."""
    return [
        {
            "label": label,
            "url": address(name),
            "current": name == current,
            "count": counted(count(rows(name))),
        }
        for name, label in labels.items()
    ]


@dataclass(frozen=True, slots=True)
class Part(Generic[M]):
    """A stretch of a list along one index: by a time and the key, or by the key alone."""

    rows: QuerySet[M]
    column: str = ""
    """A time that is never null in these rows; empty for the key alone."""
    descending: bool = False

    def along(self, *, back: bool) -> Keys:
        """Return the keys in their order, or from their end."""
        sign = "-" if self.descending is not back else ""
        names = (self.column, "pk") if self.column else ("pk",)
        ordered = self.rows.order_by(*(f"{sign}{name}" for name in names))
        return ordered.values_list(self.column or "pk", "pk")

    def beyond(self, place: Place, *, back: bool) -> Keys:
        """Return the keys that follow a place, or that stand before it, nearest first."""
        side = "lt" if self.descending is not back else "gt"
        rows = self.along(back=back)
        further = Q(**{f"pk__{side}": place.pk})
        if not self.column:
            return rows.filter(further)
        # The first condition is implied by the second; an index can begin with it.
        return rows.filter(**{f"{self.column}__{side}e": place.moment}).filter(
            Q(**{f"{self.column}__{side}": place.moment}) | further
        )

    def place(self, number: int, key: tuple[Any, UUID]) -> Place:
        """Return where a key stands, this being the part of that number."""
        value, pk = key
        return Place(number, value if self.column else None, pk)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands in a list, whether or not the row is still there."""

    part: int
    moment: datetime | None
    pk: UUID

    @classmethod
    def read(cls, text: str) -> Place | None:
        """Read what `str` wrote; None if that is not what it is."""
        try:
            if len(text) > _LONGEST:
                return None
            part, moment, pk = text.split("~")
            at = datetime.fromisoformat(moment).astimezone(UTC) if moment else None
            return cls(int(part[:1]), at, UUID(pk))
        except (ValueError, OverflowError):
            return None

    def __str__(self) -> str:
        moment = self.moment.astimezone(UTC).isoformat() if self.moment else ""
        return f"{self.part}~{moment.replace('+00:00', 'Z')}~{self.pk.hex}"


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """One page of a list, and where its neighbors begin; empty if there are none."""

    rows: list[M]
    after: str = ""
    before: str = ""

    def neighbors(self, address: Callable[..., str]) -> dict[str, str]:
        """Return the addresses of the pages beside this one, as the templates ask."""
        return {
            "next_query": address(after=self.after) if self.after else "",
            "previous_query": address(before=self.before) if self.before else "",
        }


def page_of(
    parts: Sequence[Part[M]],
    rows: QuerySet[M],
    *,
    after: str = "",
    before: str = "",
) -> Page[M]:
    """Return a page of several parts laid end to end, from a place and not by number.

    What arrives or leaves meanwhile moves nothing. A place that cannot be read is the
    start, and so is a way back that would end in less than a page.

    Args:
        parts: The list. Only keys are read from them: should the database have to sort,
            it sorts little.
        rows: How to read the rows of the page, by their keys.
        after: Where the page begins.
        before: Where it ends; this or the other.
    """
    if (place := _within(parts, before)) is not None:
        found = _collect(parts, place, back=True)
        if len(found) > PAGE:
            places = found[:PAGE][::-1]
            return Page(_read(rows, places), str(places[-1]), str(places[0]))
        place = None
    else:
        place = _within(parts, after)
    found = _collect(parts, place, back=False)
    places = found[:PAGE]
    return Page(
        _read(rows, places),
        str(places[-1]) if len(found) > PAGE else "",
        str(places[0]) if places and place is not None else "",
    )


def _read(rows: QuerySet[M], places: Sequence[Place]) -> list[M]:
    """Return the rows that are still there, in order."""
    found = rows.in_bulk([place.pk for place in places])
    return [found[place.pk] for place in places if place.pk in found]


def _within(parts: Sequence[Part[M]], text: str) -> Place | None:
    place = Place.read(text) if text else None
    if place is None or not 0 <= place.part < len(parts):
        return None
    timed = bool(parts[place.part].column)
    return place if timed is (place.moment is not None) else None


def _collect(
    parts: Sequence[Part[M]], place: Place | None, *, back: bool
) -> list[Place]:
    """Return one place more than a page holds, if there are that many."""
    found: list[Place] = []
    for number, keys in _ways(parts, place, back=back):
        room = PAGE + 1 - len(found)
        found += [parts[number].place(number, key) for key in keys[:room]]
        if len(found) > PAGE:
            break
    return found


def _ways(
    parts: Sequence[Part[M]], place: Place | None, *, back: bool
) -> Iterator[tuple[int, Keys]]:
    # Each part walks an index of its own, which one ORDER BY over all could not.
    numbers = range(len(parts))
    for number in reversed(numbers) if back else numbers:
        if place is None or (number < place.part if back else number > place.part):
            yield number, parts[number].along(back=back)
        elif number == place.part:
            yield number, parts[number].beyond(place, back=back)


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

"""Pages by position, not by number: rows that arrive meanwhile move nothing. No count."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeAlias
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import QueryDict
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from hitl_approvals.api.errors import BadRequest
from hitl_approvals.enums import InterruptStatus
from hitl_approvals.selectors import OPEN

Rows: TypeAlias = QuerySet[Any]
Place: TypeAlias = tuple[datetime, UUID]

PAGE_SIZE = 50
MAX_PAGE_SIZE = 200
KEPT = "hitl_kept"
"""Annotation of rows of which only some are meant, by a condition that has no index."""
CHUNK = 500
MOST_CHUNKS = 3
"""Rows that are looked at for one page, in steps, where a condition has no index."""
_MAX_CURSOR = 200


@dataclass(frozen=True, slots=True)
class Cursor:
    """A row that a page begins after, or ends before."""

    moment: datetime
    pk: UUID
    back: bool = False
    column: str = ""
    """The time that the list is ordered by, unless it is the list's usual one."""

    @classmethod
    def read(cls, text: str) -> Cursor:
        """Return the cursor that `str` wrote.

        Raises:
            BadRequest: It is none of ours.
        """
        try:
            if len(text) > _MAX_CURSOR:
                raise ValueError("too long")
            parts = json.loads(urlsafe_b64decode(text.encode("ascii")))
            moment, pk, back, *rest = parts
            at = datetime.fromisoformat(moment)
            if at.tzinfo is None or not all(isinstance(one, str) for one in rest):
                raise ValueError("no zone, or no name")
            # In UTC here: at the ends of the calendar that overflows.
            at, column = at.astimezone(UTC), "".join(rest)
            cursor = cls(at, UUID(pk), bool(back), column)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise _no_cursor() from error
        return cursor

    def __str__(self) -> str:
        parts = [self.moment.isoformat(), str(self.pk), int(self.back)]
        parts += [self.column] if self.column else []
        return urlsafe_b64encode(json.dumps(parts).encode("ascii")).decode("ascii")


class PositionPagination(BasePagination):
    """Orders by a time and the key, and pages by comparing with the last row shown."""

    display_page_controls = False
    orderings: ClassVar[tuple[str, ...]] = ()
    """What `ordering` may be; the first is the usual one."""

    def parts(self, rows: Rows, params: QueryDict, column: str) -> list[Rows]:
        """Return the rows as parts that each have an index in the order of the list."""
        return [rows]

    def paginate_queryset(  # type: ignore[override]  # our rows only, never a list
        self,
        queryset: Rows,
        request: Request,
        view: APIView | None = None,
    ) -> list[Any]:
        """Return one page.

        Raises:
            BadRequest: A parameter cannot be read.
        """
        self.address = request.build_absolute_uri()
        params = request.query_params
        size = page_size(params.get("page_size"))
        ordering = self._ordering(params.get("ordering"))
        column = ordering.removeprefix("-")
        given = params.get("cursor")
        cursor = None if given is None else Cursor.read(given)
        self.column = "" if column == self.orderings[0].removeprefix("-") else column
        if cursor is not None and cursor.column != self.column:
            raise _no_cursor()
        back = cursor is not None and cursor.back
        walk = _Walk(column, descending=ordering.startswith("-") is not back)
        begin = None if cursor is None else (cursor.moment, cursor.pk)
        found, given_up = walk.along(
            self.parts(queryset, params, column), begin, size + 1
        )
        more = len(found) > size
        places = found[:size]
        end = places[-1] if more else given_up
        rows = queryset.in_bulk([pk for _, pk in places])
        start = places[0] if places and cursor is not None else None
        if back:
            places.reverse()
            # What lies ahead was there before; the row it began with is on that page.
            self.next, self.previous = self._at(start), self._at(end, back=True)
        else:
            self.next, self.previous = self._at(end), self._at(start, back=True)
        return [rows[pk] for _, pk in places if pk in rows]

    def get_paginated_response(self, data: Any) -> Response:
        """Return a page with the addresses of its neighbors."""
        return Response(
            {
                "next": self._link(self.next),
                "previous": self._link(self.previous),
                "results": data,
            }
        )

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Describe a page for OpenAPI."""
        address = {"type": "string", "nullable": True, "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": address, "previous": address, "results": schema},
        }

    def get_schema_operation_parameters(self, view: APIView) -> list[Any]:
        """Describe the query parameters for OpenAPI."""
        kinds: dict[str, dict[str, Any]] = {
            "cursor": {"type": "string"},
            "page_size": {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE},
            "ordering": {"type": "string", "enum": list(self.orderings)},
        }
        return [
            {"name": name, "in": "query", "required": False, "schema": schema}
            for name, schema in kinds.items()
        ]

    def _ordering(self, text: str | None) -> str:
        if text is None:
            return self.orderings[0]
        if text in self.orderings:
            return text
        message = f"Give one of {', '.join(self.orderings)}."
        raise BadRequest(
            f"ordering: {message}", errors=[{"loc": "ordering", "message": message}]
        )

    def _at(self, place: Place | None, *, back: bool = False) -> Cursor | None:
        return None if place is None else Cursor(*place, back, self.column)

    def _link(self, cursor: Cursor | None) -> str | None:
        if cursor is None:
            return None
        return replace_query_param(self.address, "cursor", str(cursor))


class InterruptPagination(PositionPagination):
    """Interrupts, newest first, or by the time that they have left or were decided at."""

    orderings = (
        "-requested_at",
        "requested_at",
        "expires_at",
        "-decided_at",
        "decided_at",
    )

    def parts(self, rows: Rows, params: QueryDict, column: str) -> list[Rows]:
        """Return the rows of each status that was asked for, or all as one part.

        Each status has an index in the order of the requests. Asked for several at
        once, a database either sorts them all, or walks along all rows in the hope that
        these are not the last.
        """
        if column == "expires_at":
            limited = Q(status=InterruptStatus.PENDING, expires_at__isnull=False)
            return [rows.filter(limited)]
        if column == "decided_at":
            return [rows.filter(decided_at__isnull=False)]
        asked = params.getlist("status") or list(InterruptStatus.values)
        if only := params.get("open"):
            asked = [one for one in asked if (one in OPEN) is (only == "true")]
        elif "status" not in params:
            return [rows]
        return [rows.filter(status=one) for one in sorted(set(asked))]


class TurnPagination(PositionPagination):
    """Turns, those that were started last first."""

    orderings = ("-created_at", "created_at")


@dataclass(frozen=True, slots=True)
class _Walk:
    """Reads the first keys of several parts in one order."""

    column: str
    descending: bool

    def along(
        self, parts: Sequence[Rows], begin: Place | None, size: int
    ) -> tuple[list[Place], Place | None]:
        """Return the first places; if it was given up before, also how far it came.

        Only keys are read: should a database have to sort, it sorts little.
        """
        found: list[Place] = []
        ends: list[Place] = []
        steps = max(1, MOST_CHUNKS // max(1, len(parts)))
        for part in parts:
            places, end = self._one(part, begin, size, steps)
            found += places
            ends += [] if end is None else [end]
        if len(parts) > 1:
            found.sort(reverse=self.descending)
        if not ends:
            return found[:size], None
        # Beyond the nearest end nobody knows what else there is.
        nearest = max(ends) if self.descending else min(ends)
        known = [
            place
            for place in found
            if (place >= nearest if self.descending else place <= nearest)
        ]
        return known[:size], nearest

    def _one(
        self, part: Rows, begin: Place | None, size: int, steps: int
    ) -> tuple[list[Place], Place | None]:
        if KEPT not in part.query.annotations:
            keys = self._beyond(part, begin).values_list(self.column, "pk")
            return list(keys[:size]), None
        found: list[Place] = []
        for _step in range(steps):
            keys = self._beyond(part, begin).values_list(self.column, "pk", KEPT)
            chunk = list(keys[:CHUNK])
            found += [(moment, pk) for moment, pk, kept in chunk if kept]
            if len(found) >= size or len(chunk) < CHUNK:
                return found[:size], None
            begin = chunk[-1][:2]
        return found, begin

    def _beyond(self, rows: Rows, begin: Place | None) -> Rows:
        sign, side = ("-", "lt") if self.descending else ("", "gt")
        rows = rows.order_by(f"{sign}{self.column}", f"{sign}pk")
        if begin is None:
            return rows
        moment, pk = begin
        # The first condition is implied by the second; an index can begin with it.
        return rows.filter(**{f"{self.column}__{side}e": moment}).filter(
            Q(**{f"{self.column}__{side}": moment}) | Q(**{f"pk__{side}": pk})
        )


def page_size(text: str | None) -> int:
    """Return how many rows a page is to hold.

    Raises:
        BadRequest: It is no number, or too high.
    """
    if text is None:
        return PAGE_SIZE
    if text.isascii() and text.isdigit() and len(text) < 5:
        size = int(text)
        if 1 <= size <= MAX_PAGE_SIZE:
            return size
    message = f"Give a number from 1 to {MAX_PAGE_SIZE}."
    raise BadRequest(
        f"page_size: {message}", errors=[{"loc": "page_size", "message": message}]
    )


def _no_cursor() -> BadRequest:
    return BadRequest(
        "This cursor is none that this list gave out; start without one.",
        errors=[{"loc": "cursor", "message": "Cannot be read."}],
    )

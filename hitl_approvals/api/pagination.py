"""Pages by position, not by number: rows that arrive meanwhile move nothing. No count."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
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
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.selectors import OPEN

Rows = QuerySet[PendingInterrupt]
PAGE_SIZE = 50
MAX_PAGE_SIZE = 200
NEWEST = "-requested_at"
OLDEST = "requested_at"
_MAX_CURSOR = 200


@dataclass(frozen=True, slots=True)
class Cursor:
    """A row that a page begins after, or ends before."""

    requested_at: datetime
    pk: UUID
    back: bool = False

    @classmethod
    def at(cls, row: PendingInterrupt, *, back: bool = False) -> Cursor:
        """Return the cursor that stands on a row."""
        return cls(row.requested_at, row.pk, back)

    @classmethod
    def read(cls, text: str) -> Cursor:
        """Return the cursor that `str` wrote.

        Raises:
            BadRequest: It is none of ours.
        """
        try:
            if len(text) > _MAX_CURSOR:
                raise ValueError("too long")
            moment, pk, back = json.loads(urlsafe_b64decode(text.encode("ascii")))
            at = datetime.fromisoformat(moment)
            if at.tzinfo is None:
                raise ValueError("no zone")
            # In UTC here: at the ends of the calendar that overflows.
            cursor = cls(at.astimezone(UTC), UUID(pk), bool(back))
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise BadRequest(
                "This cursor is none that a list gave out; start without one.",
                errors=[{"loc": "cursor", "message": "Cannot be read."}],
            ) from error
        return cursor

    def __str__(self) -> str:
        parts = [self.requested_at.isoformat(), str(self.pk), int(self.back)]
        return urlsafe_b64encode(json.dumps(parts).encode("ascii")).decode("ascii")


class RequestedAtPagination(BasePagination):
    """Orders by (requested_at, id) and pages by comparing with the last row shown."""

    display_page_controls = False

    def paginate_queryset(  # type: ignore[override]  # our rows only, never a list
        self,
        queryset: QuerySet[PendingInterrupt],
        request: Request,
        view: APIView | None = None,
    ) -> list[PendingInterrupt]:
        """Return one page.

        Raises:
            BadRequest: A parameter cannot be read.
        """
        self.address = request.build_absolute_uri()
        size = _page_size(request.query_params.get("page_size"))
        newest = _newest_first(request.query_params.get("ordering"))
        given = request.query_params.get("cursor")
        cursor = None if given is None else Cursor.read(given)
        back = cursor is not None and cursor.back
        keys = _keys(
            _parts(queryset, request.query_params),
            cursor,
            size + 1,
            descending=newest is not back,
        )
        more = len(keys) > size
        found = queryset.in_bulk(keys[:size])
        page = [found[key] for key in keys[:size] if key in found]
        if back:
            page.reverse()
        has_next = back or more
        has_previous = more if back else cursor is not None
        self.next = Cursor.at(page[-1]) if page and has_next else None
        self.previous = Cursor.at(page[0], back=True) if page and has_previous else None
        return page

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
            "ordering": {"type": "string", "enum": [NEWEST, OLDEST]},
        }
        return [
            {"name": name, "in": "query", "required": False, "schema": schema}
            for name, schema in kinds.items()
        ]

    def _link(self, cursor: Cursor | None) -> str | None:
        if cursor is None:
            return None
        return replace_query_param(self.address, "cursor", str(cursor))


def _parts(rows: Rows, params: QueryDict) -> list[Rows]:
    """Return the rows of each status that was asked for, or all of them as one part.

    Each status has an index in this order. Asked for several at once, a database either
    sorts them all, or walks along all rows in the hope that these are not the last.
    """
    asked = params.getlist("status") or list(InterruptStatus.values)
    if only := params.get("open"):
        asked = [one for one in asked if (one in OPEN) is (only == "true")]
    elif "status" not in params:
        return [rows]
    return [rows.filter(status=one) for one in sorted(set(asked))]


def _keys(
    parts: Sequence[Rows], cursor: Cursor | None, size: int, *, descending: bool
) -> list[UUID]:
    """Return the keys of the first rows: should a database have to sort, it sorts little."""
    found: list[tuple[datetime, UUID]] = []
    for part in parts:
        ordered = _from(part, cursor, descending=descending)
        found += ordered.values_list("requested_at", "pk")[:size]
    if len(parts) > 1:
        found.sort(reverse=descending)
    return [pk for _, pk in found[:size]]


def _from(
    rows: QuerySet[PendingInterrupt], cursor: Cursor | None, *, descending: bool
) -> QuerySet[PendingInterrupt]:
    sign, side = ("-", "lt") if descending else ("", "gt")
    rows = rows.order_by(f"{sign}requested_at", f"{sign}pk")
    if cursor is None:
        return rows
    # The first condition is implied by the second; an index can begin with it.
    return rows.filter(**{f"requested_at__{side}e": cursor.requested_at}).filter(
        Q(**{f"requested_at__{side}": cursor.requested_at})
        | Q(**{f"pk__{side}": cursor.pk})
    )


def _page_size(text: str | None) -> int:
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


def _newest_first(text: str | None) -> bool:
    if text in (None, NEWEST):
        return True
    if text == OLDEST:
        return False
    message = f"Give {NEWEST} (newest first) or {OLDEST}."
    raise BadRequest(
        f"ordering: {message}", errors=[{"loc": "ordering", "message": message}]
    )

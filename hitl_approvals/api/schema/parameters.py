"""Headers and query parameters: what requests may carry and what answers do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django_filters import rest_framework as filters

from hitl_approvals.api.bodies import MAX_KEY
from hitl_approvals.api.filters import MOST_VALUES, MomentFilter, TextsFilter
from hitl_approvals.api.pagination import MAX_PAGE_SIZE
from hitl_approvals.api.schema.shapes import (
    ADDRESS,
    MOMENT,
    UUID,
    Shape,
    list_of,
    one_of,
    said,
    text,
)
from hitl_approvals.api.waiting import asking
from hitl_approvals.api.waiting.views import WaitingViewSet


def header(name: str, shape: Shape, about: str, *, required: bool = False) -> Shape:
    """Describe a header of a request."""
    return {
        "name": name,
        "in": "header",
        "required": required,
        "description": about,
        "schema": shape,
    }


def query(name: str, shape: Shape, about: str = "") -> Shape:
    """Describe a query parameter, which none of ours needs."""
    parameter: Shape = {"name": name, "in": "query", "required": False, "schema": shape}
    if shape.get("type") == "array":
        parameter |= {"style": "form", "explode": True}
    return parameter | ({"description": about} if about else {})


KEY: Shape = {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": r"\S"}
REQUEST_ID: Shape = {"type": "string", "pattern": "^[A-Za-z0-9._:+/=@-]{1,128}$"}

PARAMETERS: dict[str, Shape] = {
    "Id": {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "What is not the id of anything is 404.",
        "schema": UUID,
    },
    "IdempotencyKey": header(
        "Idempotency-Key",
        KEY,
        "Send the same one again after a broken connection: what was done is not done "
        "twice. For another request it is refused.",
    ),
    "NeededIdempotencyKey": header(
        "Idempotency-Key",
        KEY,
        "Names this request: send the same one again after a broken connection.",
        required=True,
    ),
    "IfMatch": header(
        "If-Match",
        {"type": "string", "pattern": r'^(\*|(W/)?"\d{1,9}"|\d{1,9})$'},
        "The revision that the person saw, in quotes.",
    ),
    "AfterNumber": query(
        "after", {"type": "integer", "minimum": 0}, "`sequence` of what came last."
    ),
    "AfterId": query("after", UUID, "`id` of what came last."),
    "AfterSlug": query("after", text(), "`slug` of what came last."),
    "PageSize": query(
        "page_size", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE}
    ),
}

HEADERS: dict[str, Shape] = {
    "RequestID": {
        "description": "The `X-Request-ID` that was sent if it is one, else a new one.",
        "required": True,
        "schema": REQUEST_ID,
    },
    "CacheControl": {
        "description": "Arguments are nobody else's business.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Replayed": {
        "description": "Whether this was done before, and nothing was written now.",
        "required": True,
        "schema": one_of(["true", "false"]),
    },
    "Location": {
        "description": "Address of what was made.",
        "required": True,
        "schema": ADDRESS,
    },
    "RetryAfter": {
        "description": "Seconds to wait.",
        "schema": {"type": "string", "pattern": r"^\d+$"},
    },
    "Challenge": {
        "description": "How to say who you are.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Allow": {
        "description": "The methods that this address takes.",
        "required": True,
        "schema": {"type": "string"},
    },
}


def of_filters(filterset: Any) -> Iterator[Shape]:
    """Describe the query parameters that a list is filtered by."""
    for name, one in filterset.base_filters.items():
        yield query(name, _of_filter(one))


def of_waiting(view: object) -> Iterator[Shape]:
    """Describe how long a read may wait, and in which states."""
    if isinstance(view, WaitingViewSet):
        yield query(
            asking.WAIT,
            {"type": "number", "minimum": 0, "maximum": asking.MOST},
            "Seconds to wait for a change, at most; a plain number with at most six "
            "decimals.",
        )
        yield query(
            asking.WHILE,
            list_of(one_of(view.kind.states)),
            "With `wait`: the states to wait in.",
        )


def of_paging(parameters: Iterable[Shape]) -> Iterator[Shape]:
    """Describe the query parameters that a list is paged by, as its paginator names them."""
    for one in parameters:
        yield query(one["name"], one["schema"], one.get("description", ""))


def _of_filter(one: Any) -> Shape:
    if isinstance(one, filters.MultipleChoiceFilter):
        return list_of(one_of(value for value, _ in one.extra["choices"]))
    if isinstance(one, filters.ChoiceFilter):
        return one_of(value for value, _ in one.extra["choices"])
    if isinstance(one, filters.UUIDFilter):
        return UUID
    if isinstance(one, TextsFilter):
        return list_of(text(), maxItems=MOST_VALUES)
    if isinstance(one, filters.NumberFilter):
        bounds = {"minimum": one.extra["min_value"], "maximum": one.extra["max_value"]}
        return {"type": "integer", **bounds}
    if isinstance(one, MomentFilter):
        return said(MOMENT, "A time with its zone.")
    return text(one.extra.get("max_length"))

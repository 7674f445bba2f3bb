"""Pages of what only grows at its end: each begins after the last that was shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from hitl_approvals.api.errors import BadRequest
from hitl_approvals.api.pagination import page_size
from hitl_approvals.api.parameters import refuse_unknown_parameters

T = TypeVar("T")

PARAMETERS = ("after", "page_size")


def page_after(
    request: Request,
    rows: Callable[[str | None, int], Sequence[T]],
    show: Callable[[Sequence[T]], list[dict[str, Any]]],
    name: str,
    **beside: Any,
) -> Response:
    """Return the page that a request asks for.

    Args:
        request: Its `after` names what the page begins after.
        rows: Returns that many rows after what is named; raises ValueError if nothing
            can be named so.
        show: Returns rows as JSON.
        name: The field by which a row is named in `after`.
        beside: What else the answer tells.

    Raises:
        BadRequest: A parameter is unknown or cannot be read.
    """
    refuse_unknown_parameters(request, PARAMETERS)
    size = page_size(request.query_params.get("page_size"))
    try:
        found = rows(request.query_params.get("after"), size + 1)
    except ValueError as error:
        message = f"Give the {name} of what came last."
        raise BadRequest(
            f"after: {message}", errors=[{"loc": "after", "message": message}]
        ) from error
    shown = show(found[:size])
    next_: str | None = None
    if len(found) > size:
        address = request.build_absolute_uri()
        next_ = replace_query_param(address, "after", str(shown[-1][name]))
    return Response({"next": next_, **beside, "results": shown})

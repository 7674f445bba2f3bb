"""Query parameters: those that nobody here would hear are refused. Reads no row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework.request import Request
from rest_framework.viewsets import GenericViewSet

from hitl_approvals.api.errors import BadRequest
from hitl_approvals.canonical import printable

FORMAT = "format"
"""REST framework's own parameter, which some clients always send."""
SEVERAL = frozenset({"status", "decision", "queue", "agent", "tool", "tag"})
"""Parameters that may be given more than once."""


def list_parameters(view: GenericViewSet[Any]) -> list[str]:
    """Return the names of what a list with filters and pages can be asked."""
    filters: Any = getattr(view, "filterset_class")  # noqa: B009  not declared there
    paginator: Any = view.paginator
    paging = paginator.get_schema_operation_parameters(view)
    return [*filters.base_filters, *(one["name"] for one in paging)]


def refuse_unknown_parameters(request: Request, known: Iterable[str]) -> None:
    """Refuse what would not be heard: a misspelt filter would show everything.

    Raises:
        BadRequest: A parameter is unknown, or given twice where one value counts.
    """
    names = sorted(known)
    errors = []
    for name in request.query_params:
        if name not in names and name != FORMAT:
            offered = ", ".join(names) or "none"
            message = f"There is no such parameter here; known are: {offered}."
            errors.append({"loc": printable(name, 80), "message": message})
        elif name not in SEVERAL and len(request.query_params.getlist(name)) > 1:
            message = "Give this once: it takes one value."
            errors.append({"loc": printable(name, 80), "message": message})
    if errors:
        detail = "; ".join(f"{one['loc']}: {one['message']}" for one in errors[:5])
        raise BadRequest(detail, errors=errors[:20])

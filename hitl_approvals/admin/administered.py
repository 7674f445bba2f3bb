"""What the pages share that only administrators see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed

from hitl_approvals import permissions
from hitl_approvals.admin.base import DeskAdmin, outside_transactions, person

M = TypeVar("M", bound=Model)


def find(rows: QuerySet[M], request: HttpRequest, key: Any) -> M:
    """Return a row, for whoever may administer.

    Raises:
        Http404: There is none, or this person may not see it.
    """
    try:
        found = rows.filter(pk=key).first()
    except (ValidationError, ValueError):
        found = None
    if found is None or not permissions.may_administer(person(request)):
        raise Http404
    return found


class AdministeredAdmin(DeskAdmin):
    """A list and a page a row, for administrators; both only show."""

    def show_list(
        self, request: HttpRequest, extra_context: Mapping[str, Any]
    ) -> HttpResponse:
        """Render the list."""
        raise NotImplementedError

    def show_row(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Render the page of a row."""
        raise NotImplementedError

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return permissions.may_administer(person(request))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        # Also asked by Django's page of what was changed.
        try:
            return find(self.get_queryset(request), request, object_id)
        except Http404:
            return None

    @outside_transactions
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        if not self.has_view_permission(request):
            return self.forbidden(request, permissions.why_not_administer())
        return self.show_list(request, extra_context or {})

    @outside_transactions
    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        return self.show_row(request, object_id)

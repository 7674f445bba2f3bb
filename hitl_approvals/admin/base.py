"""What the desk's model admins share: rendering, links, and no way to write a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _

from hitl_approvals.types import Person

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin

View = Callable[..., HttpResponse]


def outside_transactions(view: View) -> View:
    """Keep a view out of ATOMIC_REQUESTS: services open their own transactions."""
    for alias in settings.DATABASES:
        view = transaction.non_atomic_requests(using=alias)(view)
    return view


def person(request: HttpRequest) -> Person:
    """Return who is logged in; the admin lets nobody else through."""
    return cast("Person", request.user)


class DeskAdmin(_ModelAdmin):
    """A model admin that shows rows and changes none."""

    actions = None
    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def link(self, name: str, *args: Any, model: str = "") -> str:
        """Return the address of one of this site's pages; empty if it has none.

        Args:
            name: What Django calls the page, such as `change`.
            *args: What the address contains.
            model: Another model of ours, by its lower-case name.
        """
        route = f"admin:{self.opts.app_label}_{model or self.opts.model_name}_{name}"
        try:
            return reverse(route, args=args, current_app=self.admin_site.name)
        except NoReverseMatch:
            # A custom site may have registered only some of our models.
            return ""

    def page(
        self,
        request: HttpRequest,
        template: str,
        context: Mapping[str, Any],
        *,
        status: int = 200,
    ) -> HttpResponse:
        """Render one of the desk's templates inside this site's frame."""
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            f"admin/hitl_approvals/{template}",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "app_url": self._app_url(),
                "list_url": self.link("changelist"),
                **context,
            },
            status=status,
        )

    def forbidden(self, request: HttpRequest, missing: str) -> HttpResponse:
        """Render the page that names a missing right."""
        context = {"title": _("You may not do this"), "missing": missing}
        return self.page(request, "forbidden.html", context, status=403)

    def _app_url(self) -> str:
        try:
            return reverse(
                "admin:app_list",
                args=[self.opts.app_label],
                current_app=self.admin_site.name,
            )
        except NoReverseMatch:
            return ""

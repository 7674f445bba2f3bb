"""The desk in Django's admin: a list, a page a row, and the doors to the services."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _

from hitl_approvals import permissions
from hitl_approvals.admin import arrivals, hands, passes, queue, queue_rows, status_line
from hitl_approvals.admin.base import DeskAdmin, outside_transactions, person
from hitl_approvals.admin.bulk import address as bulk_address
from hitl_approvals.admin.bulk import bulk_view
from hitl_approvals.admin.bulk_outcome import outcome_view
from hitl_approvals.admin.claiming import (
    assign_view,
    claim_view,
    release_view,
    reveal_view,
)
from hitl_approvals.admin.deciding import decide_view, done_note, show_page
from hitl_approvals.admin.doors import guarded
from hitl_approvals.admin.downloads import full_view
from hitl_approvals.admin.editing import edit_view
from hitl_approvals.admin.numbers_page import numbers_view
from hitl_approvals.admin.sections import SAFETY
from hitl_approvals.admin.settling import settle_view
from hitl_approvals.admin.submissions import find
from hitl_approvals.admin.widgets import zone_name
from hitl_approvals.enums import InterruptStatus
from hitl_approvals.models import PendingInterrupt

Page = Callable[[DeskAdmin, HttpRequest, UUID], HttpResponse]
MAY_SEE = (permissions.VIEW, permissions.DECIDE, permissions.ADMINISTER)


@admin.register(PendingInterrupt)
class PendingInterruptAdmin(DeskAdmin):
    """The review desk. Subclass it to add to what it shows.

    Attributes:
        sections: What the page of an interrupt shows. Add names to it, and a method
            `section_<name>(request, row)` for each, which returns a `Section` or None.
    """

    sections: Sequence[str] = SAFETY

    def row_facts(
        self, request: HttpRequest, rows: Sequence[PendingInterrupt]
    ) -> Mapping[UUID, str]:
        """Return a line to add below each row of the list; override it.

        Asked once for all rows of a page, so that it can be one query.
        """
        return {}

    def get_urls(self) -> list[URLPattern]:
        pages: dict[str, Page] = {
            "assign": assign_view,
            "claim": claim_view,
            "release": release_view,
            "reveal": reveal_view,
            "decide": decide_view,
            "edit": edit_view,
            "full": full_view,
            "settle": settle_view,
        }
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        own = [
            path(
                f"<uuid:interrupt_id>/{verb}/", self._door(page), name=f"{name}_{verb}"
            )
            for verb, page in pages.items()
        ]
        whole: dict[str, Callable[[HttpRequest], HttpResponse]] = {
            "arrived": self._arrived,
            "keys": self._keys,
            "numbers": self._numbers,
        }
        own += [
            path(
                f"{verb}/",
                outside_transactions(self.admin_site.admin_view(view)),
                name=f"{name}_{verb}",
            )
            for verb, view in whole.items()
        ]
        own += [
            path(
                f"{verb}/",
                guarded(self, partial(page, self), partial(bulk_address, self)),
                name=f"{name}_{verb.replace('/', '_')}",
            )
            for verb, page in {"bulk": bulk_view, "bulk/outcome": outcome_view}.items()
        ]
        return [*own, *super().get_urls()]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        user = person(request)
        if obj is not None:
            return permissions.may_view(user, obj)
        return user.is_active and any(user.has_perm(one) for one in MAY_SEE)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[PendingInterrupt]:
        return permissions.visible_to(person(request))

    @outside_transactions
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        if not self.has_view_permission(request):
            return self.forbidden(request, permissions.why_not_see())
        now = timezone.now()
        filters = queue.Filters.read(request.GET)
        listing = queue.listing(person(request), filters)
        urls = queue_rows.url_map(listing.rows, self.link)
        claims = hands.claim_urls(self, person(request), listing.rows, now)
        context = {
            "title": listing.title,
            "listing": listing,
            "filters": filters,
            "groups": queue_rows.groups(
                listing.rows, urls, now, self.row_facts(request, listing.rows), claims
            ),
            "claims": bool(claims),
            "over": filters.view in (queue.DECIDED, queue.ALL),
            "next_query": listing.after,
            "previous_query": listing.before,
            "bulk_url": self._bulk_url(request, listing.rows),
            "note": done_note(self, request),
            "passed": passes.OVER in request.GET,
            "numbers_url": self.link("numbers"),
            "status": status_line.for_desk(self, request),
            "zone": zone_name(),
            "arrived_url": arrivals.address(self, filters),
            "keys_url": self.link("keys"),
            **(extra_context or {}),
        }
        return self.page(request, "interrupts.html", context)

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
        return show_page(self, request, find(request, object_id))

    def _bulk_url(self, request: HttpRequest, rows: Sequence[PendingInterrupt]) -> str:
        """Return where ticked rows go, if there is one that this person could tick."""
        waits = any(one.status == InterruptStatus.PENDING for one in rows)
        may = person(request).has_perm(permissions.DECIDE)
        return self.link("bulk") if waits and may else ""

    def _arrived(self, request: HttpRequest) -> HttpResponse:
        return arrivals.arrivals(self, request)

    def _numbers(self, request: HttpRequest) -> HttpResponse:
        return numbers_view(self, request)

    def _keys(self, request: HttpRequest) -> HttpResponse:
        return self.page(request, "keys.html", {"title": _("Keys")})

    def _door(self, page: Page) -> Callable[..., HttpResponse]:
        """Guard the page of a row; whoever was logged out comes back to the row."""

        def back(request: HttpRequest, interrupt_id: UUID) -> str:
            return self.link("change", interrupt_id)

        return guarded(self, partial(page, self), back)

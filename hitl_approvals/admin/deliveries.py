"""Deliveries in the admin: what the outside was told, and what it would not hear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from hitl_approvals.admin import delivery_page, paging, sending, status_line
from hitl_approvals.admin.administered import AdministeredAdmin
from hitl_approvals.admin.base import outside_transactions
from hitl_approvals.admin.doors import guarded
from hitl_approvals.admin.paging import Part
from hitl_approvals.admin.widgets import zone_name
from hitl_approvals.enums import DeliveryStatus
from hitl_approvals.models import Delivery
from hitl_approvals.webhooks.endpoints import endpoints
from hitl_approvals.webhooks.events import WebhookEvent

Rows = QuerySet[Delivery]

OWED, DELIVERED, GIVEN_UP = (
    DeliveryStatus.OWED.value,
    DeliveryStatus.DELIVERED.value,
    DeliveryStatus.GIVEN_UP.value,
)
ALL = "all"
VIEWS = (OWED, GIVEN_UP, DELIVERED, ALL)
_HEAVY = ("body", "last_error")
"""Columns that no row of the list shows."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What was asked of the list; anything unknown counts as not asked."""

    view: str = OWED
    channel: str = ""
    event: str = ""
    q: str = ""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Filters:
        """Read a query string; never fails."""
        view, event = str(data.get("view", "")), str(data.get("event", ""))
        return cls(
            view=view if view in VIEWS else OWED,
            channel=str(data.get("channel", ""))[:64],
            event=event if event in list(WebhookEvent) else "",
            q=str(data.get("q", "")).strip()[:100],
        )

    def query(self, **changes: str) -> str:
        """Return the query string of this list from its start, with some of it changed."""
        fields = {
            "view": self.view,
            "channel": self.channel,
            "event": self.event,
            "q": self.q,
        } | changes
        return f"?{urlencode({key: value for key, value in fields.items() if value})}"


@admin.register(Delivery)
class DeliveryAdmin(AdministeredAdmin):
    """A list of deliveries, a page a delivery, and buttons that ask a service."""

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}"

        def to_row(request: HttpRequest, delivery_id: UUID) -> str:
            return self.link("change", delivery_id)

        def to_list(request: HttpRequest) -> str:
            return self.link("changelist")

        own = [
            path(
                f"<uuid:delivery_id>/{verb}/",
                guarded(self, sending.posted(self, page), to_row),
                name=f"{name}_{verb.replace('-', '_')}",
            )
            for verb, page in sending.VERBS.items()
        ]
        own += [
            path(
                "<uuid:delivery_id>/body/",
                outside_transactions(self.admin_site.admin_view(self._body)),
                name=f"{name}_body",
            ),
            path(
                "again/",
                guarded(self, sending.many(self), to_list),
                name=f"{name}_many",
            ),
        ]
        return [*own, *super().get_urls()]

    def show_list(
        self, request: HttpRequest, extra_context: Mapping[str, Any]
    ) -> HttpResponse:
        filters = Filters.read(request.GET)
        page = paging.page_of(
            _parts(_matching(Delivery.objects.all(), filters), filters.view),
            Delivery.objects.defer(*_HEAVY),
            after=request.GET.get("after", ""),
            before=request.GET.get("before", ""),
        )
        context = {
            "title": _titles()[filters.view],
            "tabs": paging.tabs(
                _tabs(),
                filters.view,
                lambda name: Filters(view=name).query(),
                lambda name: _view(Delivery.objects.all(), name),
            ),
            "filters": filters,
            "narrowed": bool(filters.channel or filters.event or filters.q),
            "channels": _channels(filters.channel),
            "events": list(WebhookEvent),
            "rows": delivery_page.list_rows(self, page.rows, timezone.now()),
            "many_url": self.link("many") if page.rows else "",
            "status": status_line.for_desk(self, request),
            "zone": zone_name(),
            **page.neighbors(filters.query),
            **extra_context,
        }
        return self.page(request, "deliveries.html", context)

    def show_row(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return sending.show_delivery(self, request, sending.find(request, object_id))

    def _body(self, request: HttpRequest, delivery_id: UUID) -> HttpResponse:
        return sending.body_view(request, delivery_id)


def _view(rows: Rows, name: str) -> Rows:
    if name == DELIVERED:
        # So said, no index can lead to nearly all rows, which then would be sorted.
        return rows.exclude(status__in=(OWED, GIVEN_UP))
    return rows if name == ALL else rows.filter(status=name)


def _parts(rows: Rows, view: str) -> list[Part[Delivery]]:
    """Return a view as parts to be laid end to end, each along one index."""
    found = _view(rows, view)
    if view != OWED:
        return [Part(found, "created_at", descending=True)]
    return [
        Part(found.filter(next_attempt_at__isnull=False), "next_attempt_at"),
        Part(found.filter(next_attempt_at__isnull=True)),
    ]


def _matching(rows: Rows, filters: Filters) -> Rows:
    if "\x00" in filters.channel + filters.q:
        return rows.none()  # no database column holds it
    if filters.channel:
        rows = rows.filter(channel=filters.channel)
    if filters.event:
        rows = rows.filter(event_type=filters.event)
    return rows.filter(_search(filters.q)) if filters.q else rows


def _search(text: str) -> Q:
    try:
        key = UUID(text)
    except ValueError:
        return Q(pk__in=[])
    return Q(pk=key) | Q(subject_id__in=[key, *delivery_page.inside(key)])


def _channels(chosen: str) -> list[tuple[str, str]]:
    """Return the endpoints to choose from: the site's, and the one that is chosen."""
    found = {one.channel: one.name for one in endpoints()}
    if chosen:
        found.setdefault(chosen, delivery_page.endpoint_name(chosen))
    return sorted(found.items())


def _tabs() -> dict[str, str]:
    return {
        OWED: pgettext("deliveries", "Owed"),
        GIVEN_UP: pgettext("deliveries", "Given up"),
        DELIVERED: pgettext("deliveries", "Delivered"),
        ALL: pgettext("deliveries", "All"),
    }


def _titles() -> dict[str, str]:
    return {
        OWED: _("Deliveries that are owed"),
        GIVEN_UP: _("Deliveries that were given up"),
        DELIVERED: _("Deliveries that arrived"),
        ALL: _("All deliveries"),
    }

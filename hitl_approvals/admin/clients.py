"""Agent clients in the admin: who may call from elsewhere, with which token, how much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from hitl_approvals.admin import client_page, paging, tokens
from hitl_approvals.admin.administered import AdministeredAdmin
from hitl_approvals.admin.doors import guarded
from hitl_approvals.admin.widgets import zone_name
from hitl_approvals.models import AgentClient

ACTIVE, REVOKED, ALL = "active", "revoked", "all"


@admin.register(AgentClient)
class AgentClientAdmin(AdministeredAdmin):
    """A list of clients, a page a client, and the pages where a token is made or ends."""

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}"

        def to_row(request: HttpRequest, client_id: UUID) -> str:
            return self.link("change", client_id)

        def to_list(request: HttpRequest) -> str:
            return self.link("changelist")

        own = [
            path(
                f"<uuid:client_id>/{verb}/",
                guarded(self, page(self), to_row),
                name=f"{name}_{verb}",
            )
            for verb, page in tokens.PAGES.items()
        ]
        # Before Django's own of the same name: whoever was logged out loses nothing.
        adding = guarded(self, tokens.add_page(self), to_list)
        return [*own, path("add/", adding, name=f"{name}_add"), *super().get_urls()]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_view_permission(request)

    def show_list(
        self, request: HttpRequest, extra_context: Mapping[str, Any]
    ) -> HttpResponse:
        view = request.GET.get("view", ACTIVE)
        view = view if view in (REVOKED, ALL) else ACTIVE
        text = request.GET.get("q", "").strip()[:100]
        found = _view(AgentClient.objects.all(), view)
        if text:
            found = (
                found.none() if "\x00" in text else found.filter(name__icontains=text)
            )
        page = paging.page_of(
            [paging.Part(found, descending=True)],
            AgentClient.objects.all(),
            after=request.GET.get("after", ""),
            before=request.GET.get("before", ""),
        )
        query = {"view": view, "q": text}
        context = {
            "title": _titles()[view],
            "tabs": paging.tabs(
                _tabs(),
                view,
                lambda name: f"?{urlencode({'view': name})}",
                lambda name: _view(AgentClient.objects.all(), name),
            ),
            "view": view,
            "q": text,
            "rows": client_page.list_rows(self, page.rows, timezone.now()),
            "add_url": self.link("add"),
            "zone": zone_name(),
            **page.neighbors(lambda **place: f"?{urlencode({**query, **place})}"),
            **extra_context,
        }
        return self.page(request, "clients.html", context)

    def show_row(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return tokens.show_client(self, request, object_id)


def _view(rows: QuerySet[AgentClient], name: str) -> QuerySet[AgentClient]:
    if name == ALL:
        return rows
    return rows.filter(revoked_at__isnull=name == ACTIVE)


def _tabs() -> dict[str, str]:
    return {
        ACTIVE: pgettext("clients", "Active"),
        REVOKED: pgettext("clients", "Revoked"),
        ALL: pgettext("clients", "All"),
    }


def _titles() -> dict[str, str]:
    return {
        ACTIVE: _("Active agent clients"),
        REVOKED: _("Revoked agent clients"),
        ALL: _("All agent clients"),
    }

"""Turns in the admin: what runs, what waits, what is stuck."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _

from hitl_approvals import permissions
from hitl_approvals.admin import paging, steering, turn_page
from hitl_approvals.admin.base import DeskAdmin, outside_transactions, person
from hitl_approvals.admin.doors import guarded
from hitl_approvals.admin.turn_roads import STOPPED
from hitl_approvals.admin.widgets import zone_name
from hitl_approvals.enums import OPEN_TURN, TurnStatus
from hitl_approvals.models import AgentTurn

VIEWS: dict[str, tuple[str, ...]] = {
    "open": OPEN_TURN,
    "stuck": STOPPED,
    "over": (TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.CANCELLED),
}


@admin.register(AgentTurn)
class AgentTurnAdmin(DeskAdmin):
    """A list of turns, a page a turn, and buttons that ask a service."""

    def get_urls(self) -> list[URLPattern]:
        def back(request: HttpRequest, turn_id: UUID) -> str:
            return self.link("change", turn_id)

        own = [
            path(
                f"<uuid:turn_id>/{name}/",
                guarded(self, steering.posted(self, name, verb), back),
                name=f"{self.opts.app_label}_{self.opts.model_name}_{name}",
            )
            for name, verb in steering.VERBS.items()
        ]
        return [*own, *super().get_urls()]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        user = person(request)
        if user.is_active and user.has_perm(permissions.VIEW_TURN):
            return True
        return obj is not None and obj.requested_by_id == user.pk

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentTurn]:
        return permissions.turns_visible_to(person(request))

    @outside_transactions
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        if not self.has_view_permission(request):
            missing = _("You need the right “Can view agent turn” to see turns.")
            return self.forbidden(request, missing)
        visible = permissions.turns_visible_to(person(request))
        view = request.GET.get("view", "open")
        view = view if view in (*VIEWS, "all") else "open"
        text = request.GET.get("q", "").strip()[:200]
        found = _view(visible, view)
        if text:
            found = found.filter(_search(text))
        page = paging.page_of(
            [paging.Part(found, descending=True)],
            turn_page.light(visible),
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
                lambda name: _view(visible, name),
            ),
            "view": view,
            "q": text,
            "rows": turn_page.list_rows(self, page.rows, timezone.now()),
            "zone": zone_name(),
            **page.neighbors(lambda **place: f"?{urlencode({**query, **place})}"),
            **(extra_context or {}),
        }
        return self.page(request, "turns.html", context)

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
        return steering.show_turn(self, request, steering.find(request, object_id))


def _view(rows: QuerySet[AgentTurn], name: str) -> QuerySet[AgentTurn]:
    return rows.filter(status__in=VIEWS[name]) if name in VIEWS else rows


def _search(text: str) -> Q:
    if "\x00" in text:
        return Q(pk__in=[])
    try:
        return Q(pk=UUID(text)) | Q(thread_id=text)
    except ValueError:
        return Q(agent__icontains=text) | Q(thread_id__icontains=text)


def _tabs() -> dict[str, str]:
    return {
        "open": _("Under way"),
        "stuck": _("Stuck"),
        "over": _("Over"),
        "all": _("All"),
    }


def _titles() -> dict[str, str]:
    return {
        "open": _("Turns under way"),
        "stuck": _("Turns that are stuck"),
        "over": _("Turns that are over"),
        "all": _("All turns"),
    }

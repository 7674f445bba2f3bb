"""Turns in the admin: what runs, what waits, what is stuck; cancel, retry and fork by service."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _

from hitl_approvals import permissions, selectors, services
from hitl_approvals.admin import forking, paging, parsing, turn_page
from hitl_approvals.admin.base import DeskAdmin, outside_transactions, person
from hitl_approvals.admin.text import plain
from hitl_approvals.admin.widgets import zone_name
from hitl_approvals.enums import OPEN_TURN, Door, TurnStatus
from hitl_approvals.exceptions import (
    KeyReused,
    PayloadRejected,
    ReviewerNotAllowed,
    TransitionNotAllowed,
    TurnNotFound,
)
from hitl_approvals.models import AgentTurn

STUCK = (TurnStatus.NEEDS_ATTENTION, TurnStatus.FAILED)
VIEWS: dict[str, tuple[str, ...]] = {
    "open": OPEN_TURN,
    "stuck": STUCK,
    "over": (TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.CANCELLED),
}


@admin.register(AgentTurn)
class AgentTurnAdmin(DeskAdmin):
    """A list of turns, a page a turn, and buttons that ask a service."""

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        verbs = {"cancel": self._cancel, "fork": self._fork, "retry": self._retry}
        own = [
            path(f"<uuid:turn_id>/{verb}/", self._door(view), name=f"{name}_{verb}")
            for verb, view in verbs.items()
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
            "tabs": [
                {
                    "label": label,
                    "url": f"?{urlencode({'view': name})}",
                    "current": name == view,
                    "count": paging.counted(paging.count(_view(visible, name))),
                }
                for name, label in _tabs().items()
            ],
            "view": view,
            "q": text,
            "rows": turn_page.list_rows(self, page.rows, timezone.now()),
            "next_query": f"?{urlencode({**query, 'after': page.after})}"
            if page.after
            else "",
            "previous_query": f"?{urlencode({**query, 'before': page.before})}"
            if page.before
            else "",
            "zone": zone_name(),
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
        turn = _find(request, object_id)
        context = turn_page.detail(self, turn, person(request), timezone.now())
        may = _may_administer(request, turn)
        context |= {
            "cancel_url": self.link("cancel", turn.pk)
            if may and turn.status in OPEN_TURN
            else "",
            "retry_url": self.link("retry", turn.pk)
            if may and turn.status in STUCK
            else "",
            "fork_url": self.link("fork", turn.pk)
            if forking.may_fork(person(request), turn)
            else "",
        }
        return self.page(request, "turn.html", context)

    def _door(
        self, view: Callable[[HttpRequest, UUID], HttpResponse]
    ) -> Callable[..., HttpResponse]:
        def posted(request: HttpRequest, turn_id: UUID) -> HttpResponse:
            if request.method != "POST":
                return HttpResponseRedirect(self.link("change", turn_id))
            _find(request, turn_id)
            try:
                return view(request, turn_id)
            except TurnNotFound as error:
                raise Http404(error.detail) from error
            except ReviewerNotAllowed as error:
                return self.forbidden(request, error.detail)
            except (TransitionNotAllowed, PayloadRejected, KeyReused) as error:
                self.message_user(request, error.detail, messages.WARNING)
                return HttpResponseRedirect(self.link("change", turn_id))

        guarded: Any = self.admin_site.admin_view(posted)
        return outside_transactions(update_wrapper(guarded, view))

    def _cancel(self, request: HttpRequest, turn_id: UUID) -> HttpResponse:
        reason = parsing.lines(request.POST.get("reason", "")).replace("\x00", "")
        turn = services.cancel(
            turn_id, by=person(request), via=Door.ADMIN.value, reason=reason.strip()
        )
        return self._done(request, turn, _("The turn was cancelled."))

    def _retry(self, request: HttpRequest, turn_id: UUID) -> HttpResponse:
        turn = services.retry(turn_id, by=person(request), via=Door.ADMIN.value)
        return self._done(request, turn, _("The turn is tried again."))

    def _fork(self, request: HttpRequest, turn_id: UUID) -> HttpResponse:
        """Ask once more, without any change, and fork when that was answered."""
        at = request.POST.get("at", "").strip()[:64] or None
        if request.POST.get("step") != "fork":
            turn = _find(request, turn_id)
            context = forking.confirmation(self, turn, at, person(request))
            return self.page(request, "fork.html", context)
        forked = services.fork(
            turn_id,
            at=at,
            by=person(request),
            via=Door.ADMIN.value,
            # A second click finds the fork that the first one made.
            key=request.POST.get("key", "")[:64] or None,
        )
        return self._done(request, forked, _("This is the fork."))

    def _done(
        self, request: HttpRequest, turn: AgentTurn, words: str
    ) -> HttpResponseRedirect:
        self.log_change(request, turn, f"{words} ({plain(turn.agent)})")
        self.message_user(request, words, messages.SUCCESS)
        return HttpResponseRedirect(self.link("change", turn.pk))


def _find(request: HttpRequest, turn_id: Any) -> AgentTurn:
    try:
        return selectors.turn_get(turn_id, person(request))
    except TurnNotFound as error:
        raise Http404(error.detail) from error


def _may_administer(request: HttpRequest, turn: AgentTurn) -> bool:
    try:
        permissions.require_administer_turn(person(request), turn)
    except (ReviewerNotAllowed, TurnNotFound):
        return False
    return True


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

"""The page of a turn, and what is posted from it: cancel, retry, restart, review, fork."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
)
from django.utils import timezone
from django.utils.translation import gettext as _

from hitl_approvals import permissions, selectors, services
from hitl_approvals.admin import (
    delivery_page,
    forking,
    parsing,
    turn_page,
    turn_roads,
)
from hitl_approvals.admin.base import DeskAdmin, View, person
from hitl_approvals.admin.text import plain
from hitl_approvals.admin.turn_roads import Typed
from hitl_approvals.enums import OPEN_TURN, Door
from hitl_approvals.exceptions import (
    InterruptNotFound,
    KeyReused,
    PayloadRejected,
    ReviewerNotAllowed,
    TransitionNotAllowed,
    TurnNotFound,
)
from hitl_approvals.models import AgentTurn

Verb = Callable[[DeskAdmin, HttpRequest, AgentTurn, Typed], HttpResponse]


class _Unfinished(Exception):
    """The form lacks something, or the turn changed; it goes back with what was typed."""


def show_turn(
    desk: DeskAdmin,
    request: HttpRequest,
    turn: AgentTurn,
    *,
    typed: Typed | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the page of a turn; changes nothing."""
    user, now = person(request), timezone.now()
    context = turn_page.detail(desk, turn, user, now)
    ledger = turn_roads.read(desk, turn, user, now)
    missing = _missing(request, turn)
    may_cancel = not missing and turn.status in OPEN_TURN
    stopped = ledger is not None
    context |= {
        "typed": typed or Typed(),
        "ledger": ledger,
        "must_look": ledger is not None and turn_roads.must_look(ledger),
        "steer_missing": missing if stopped else "",
        "told_url": delivery_page.url_about(desk, user, turn),
        "cancel_url": desk.link("cancel", turn.pk) if may_cancel else "",
        "retry_url": desk.link("retry", turn.pk) if stopped and not missing else "",
        "restart_url": desk.link("restart", turn.pk),
        "review_url": desk.link("review", turn.pk),
        "fork_url": desk.link("fork", turn.pk) if forking.may_fork(user, turn) else "",
    }
    if typed and typed.errors:
        context["title"] = _("Error: %s") % context["title"]
    return desk.page(request, "turn.html", context, status=status)


def posted(desk: DeskAdmin, name: str, verb: Verb) -> View:
    """Return the view that takes a verb's form; a GET only leads to the page."""

    def view(request: HttpRequest, turn_id: UUID) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseRedirect(desk.link("change", turn_id))
        turn, typed = find(request, turn_id), Typed.read(request, name)
        try:
            return verb(desk, request, turn, typed)
        except (TurnNotFound, InterruptNotFound) as error:
            raise Http404(error.detail) from error
        except ReviewerNotAllowed as error:
            return desk.forbidden(request, error.detail)
        except _Unfinished:
            stale = "" in typed.errors
            return show_turn(
                desk,
                request,
                find(request, turn_id),
                typed=typed,
                status=409 if stale else 200,
            )
        except (TransitionNotAllowed, PayloadRejected, KeyReused) as error:
            if typed.lost is not None:
                typed.errors[""] = error.detail
                now = find(request, turn_id)
                return show_turn(desk, request, now, typed=typed, status=409)
            desk.message_user(request, error.detail, messages.WARNING)
            return HttpResponseRedirect(desk.link("change", turn_id))

    return view


def find(request: HttpRequest, turn_id: Any) -> AgentTurn:
    """Return a turn that the logged-in person may see.

    Raises:
        Http404: There is none.
    """
    try:
        return selectors.turn_get(turn_id, person(request))
    except TurnNotFound as error:
        raise Http404(error.detail) from error


def _cancel(
    desk: DeskAdmin, request: HttpRequest, turn: AgentTurn, typed: Typed
) -> HttpResponse:
    _require_checked(desk, request, turn, typed)
    turn = services.cancel(
        turn.pk,
        by=person(request),
        via=Door.ADMIN.value,
        reason=typed.reason.replace("\x00", "").strip(),
    )
    return _done(desk, request, turn, _("The turn was cancelled."))


def _retry(
    desk: DeskAdmin, request: HttpRequest, turn: AgentTurn, typed: Typed
) -> HttpResponse:
    _require_checked(desk, request, turn, typed)
    turn = services.retry(turn.pk, by=person(request), via=Door.ADMIN.value)
    return _done(desk, request, turn, _("The turn is tried again."))


def _restart(
    desk: DeskAdmin, request: HttpRequest, turn: AgentTurn, typed: Typed
) -> HttpResponse:
    changes: dict[str, Any] = {}
    if typed.input.strip():
        changes["input"] = typed.input
        if typed.as_json:
            try:
                changes["input"] = parsing.json_value(typed.input)
            except parsing.Unreadable as error:
                typed.errors["input"] = str(error)
    _require_checked(desk, request, turn, typed)
    user = person(request)
    turn = services.restart(turn.pk, by=user, via=Door.ADMIN.value, **changes)
    return _done(desk, request, turn, _("The turn starts from its beginning."))


def _review(
    desk: DeskAdmin, request: HttpRequest, turn: AgentTurn, typed: Typed
) -> HttpResponse:
    row = selectors.interrupt_get(request.POST.get("interrupt", ""), person(request))
    if row.turn_id != turn.pk:
        raise InterruptNotFound
    services.re_review(row.pk, by=person(request), via=Door.ADMIN.value)
    words = _("The decision was taken back; try the turn again to be asked anew.")
    return _done(desk, request, turn, words)


def _fork(
    desk: DeskAdmin, request: HttpRequest, turn: AgentTurn, typed: Typed
) -> HttpResponse:
    """Ask once more, without any change, and fork when that was answered."""
    at = request.POST.get("at", "").strip()[:64] or None
    if request.POST.get("step") != "fork":
        context = forking.confirmation(desk, turn, at, person(request))
        return desk.page(request, "fork.html", context)
    forked = services.fork(
        turn.pk,
        at=at,
        by=person(request),
        via=Door.ADMIN.value,
        # A second click finds the fork that the first one made.
        key=request.POST.get("key", "")[:64] or None,
    )
    return _done(desk, request, forked, _("This is the fork."))


VERBS: dict[str, Verb] = {
    "cancel": _cancel,
    "fork": _fork,
    "restart": _restart,
    "retry": _retry,
    "review": _review,
}


def _require_checked(
    desk: DeskAdmin, request: HttpRequest, turn: AgentTurn, typed: Typed
) -> None:
    """Refuse what was not made from the page as it stands.

    Raises:
        ReviewerNotAllowed, TurnNotFound: The right is missing.
        _Unfinished: Something is missing, or the turn changed.
    """
    permissions.require_administer_turn(person(request), turn)
    ledger = turn_roads.read(desk, turn, person(request), timezone.now())
    if not turn_roads.check(ledger, request, typed) or typed.errors:
        raise _Unfinished


def _missing(request: HttpRequest, turn: AgentTurn) -> str:
    try:
        permissions.require_administer_turn(person(request), turn)
    except (ReviewerNotAllowed, TurnNotFound) as error:
        return error.detail
    return ""


def _done(
    desk: DeskAdmin, request: HttpRequest, turn: AgentTurn, words: str
) -> HttpResponseRedirect:
    desk.log_change(request, turn, f"{words} ({plain(turn.agent)})")
    desk.message_user(request, words, messages.SUCCESS)
    return HttpResponseRedirect(desk.link("change", turn.pk))

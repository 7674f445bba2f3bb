"""The page of a delivery, and what is posted from it and from the list: again, no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

from django.contrib import messages
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hitl_approvals import permissions, services
from hitl_approvals.admin import administered, delivery_page, downloads, paging, parsing
from hitl_approvals.admin.base import DeskAdmin, View, person
from hitl_approvals.admin.text import plain
from hitl_approvals.enums import DeliveryStatus
from hitl_approvals.exceptions import (
    HitlApprovalsError,
    NotFound,
    ReviewerNotAllowed,
)
from hitl_approvals.models import Delivery

Verb = Callable[[HttpRequest, Delivery], str]
MOST_REASON = 500


class _Missing(Exception):
    """The form lacks something; it goes back with what was typed."""


def show_delivery(
    desk: DeskAdmin,
    request: HttpRequest,
    row: Delivery,
    *,
    fault: str = "",
    typed: str = "",
    status: int = 200,
) -> HttpResponse:
    """Render the page of a delivery; changes nothing.

    Args:
        desk: The model admin that the page belongs to.
        request: The request.
        row: The delivery.
        fault: Why nothing was recorded, if something was sent.
        typed: The reason as far as it was typed.
        status: HTTP status of the answer.
    """
    context = delivery_page.detail(desk, row, timezone.now())
    context |= {
        "fault": fault,
        "typed": typed,
        "again_url": desk.link("again", row.pk),
        "give_up_url": desk.link("give_up", row.pk)
        if row.status == DeliveryStatus.OWED
        else "",
        "body_url": desk.link("body", row.pk),
        "history_url": desk.link("history", row.pk),
    }
    if fault:
        context["title"] = _("Error: %s") % context["title"]
    return desk.page(request, "delivery.html", context, status=status)


def find(request: HttpRequest, delivery_id: Any) -> Delivery:
    """Return a delivery, for whoever may administer.

    Raises:
        Http404: There is none, or this person may not see it.
    """
    return administered.find(Delivery.objects.all(), request, delivery_id)


def posted(desk: DeskAdmin, verb: Verb) -> View:
    """Return the view that takes a verb's form; a GET only leads to the page."""

    def view(request: HttpRequest, delivery_id: UUID) -> HttpResponse:
        place = desk.link("change", delivery_id)
        if request.method != "POST":
            return HttpResponseRedirect(place)
        row = find(request, delivery_id)
        typed = request.POST.get("reason", "")
        try:
            words = verb(request, row)
        except NotFound as error:
            raise Http404(error.detail) from error
        except ReviewerNotAllowed as error:
            return desk.forbidden(request, error.detail)
        except _Missing as error:
            return show_delivery(desk, request, row, fault=str(error), typed=typed)
        except HitlApprovalsError as error:
            now = find(request, delivery_id)
            return show_delivery(
                desk, request, now, fault=error.detail, typed=typed, status=409
            )
        desk.log_change(request, row, words)
        desk.message_user(request, words, messages.SUCCESS)
        return HttpResponseRedirect(place)

    return view


def many(desk: DeskAdmin) -> View:
    """Return the view that sends the ticked ones again; a GET only leads to the list."""

    def view(request: HttpRequest) -> HttpResponse:
        back = f"{desk.link('changelist')}{_query(request.POST.get('back', ''))}"
        if request.method != "POST":
            return HttpResponseRedirect(back)
        if not permissions.may_administer(person(request)):
            return desk.forbidden(request, permissions.why_not_administer())
        chosen = _ids(request.POST.getlist("chosen"))
        if not chosen:
            desk.message_user(request, _("Tick what to send again."), messages.WARNING)
            return HttpResponseRedirect(back)
        _send_all(desk, request, chosen)
        return HttpResponseRedirect(back)

    return view


def body_view(request: HttpRequest, delivery_id: UUID) -> HttpResponse:
    """Hand out the body as it is sent, as text to save and never as a page."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    row = find(request, delivery_id)
    return downloads.text_file(
        delivery_page.body_text(row), f"delivery-{row.pk}.json.txt"
    )


def _send_all(desk: DeskAdmin, request: HttpRequest, chosen: list[UUID]) -> None:
    sent, refused = 0, ""
    for pk in chosen:
        try:
            row = find(request, pk)
            words = _again(request, row)
        except (Http404, HitlApprovalsError) as error:
            refused = str(getattr(error, "detail", "")) or _(
                "It is not there any more."
            )
            continue
        sent += 1
        desk.log_change(request, row, words)
    if sent:
        text = ngettext(
            "%d delivery is sent again.", "%d deliveries are sent again.", sent
        )
        desk.message_user(request, text % sent, messages.SUCCESS)
    if rest := len(chosen) - sent:
        text = ngettext(
            "%(number)d delivery is not sent again: %(why)s",
            "%(number)d deliveries are not sent again: %(why)s",
            rest,
        )
        said = {"number": rest, "why": plain(refused, 300)}
        desk.message_user(request, text % said, messages.WARNING)


def _again(request: HttpRequest, row: Delivery) -> str:
    services.resend_delivery(row.pk, by=person(request))
    return _("It is sent again as soon as a worker comes by.")


def _give_up(request: HttpRequest, row: Delivery) -> str:
    reason = parsing.lines(request.POST.get("reason", "")).replace("\x00", "").strip()
    if not reason:
        raise _Missing(_("Say why nobody needs to hear of it."))
    if len(reason) > MOST_REASON:
        raise _Missing(_("Write at most %d characters.") % MOST_REASON)
    services.give_up_delivery(row.pk, by=person(request), reason=reason)
    return _("It was given up; no attempt follows.")


VERBS: dict[str, Verb] = {"again": _again, "give-up": _give_up}


def _ids(texts: list[str]) -> list[UUID]:
    found = []
    for text in texts[: paging.PAGE]:
        try:
            found.append(UUID(text))
        except ValueError:
            continue
    return list(dict.fromkeys(found))


def _query(text: str) -> str:
    """Return the query string of a list, with nothing in it but what the list reads."""
    known = ("view", "channel", "event", "q", "after", "before")
    pairs = parse_qsl(text[:1000].lstrip("?"))
    kept = [(key, value) for key, value in pairs if key in known]
    return f"?{urlencode(kept)}" if kept else ""

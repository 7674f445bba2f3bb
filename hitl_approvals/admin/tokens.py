"""Makes, renews and ends the tokens of agent clients, and changes what a client may do.

A token is in the answer to the POST that made it and nowhere else: no redirect could
carry it without leaving it in an address, a session or a cookie.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.debug import sensitive_variables

from hitl_approvals import permissions, services
from hitl_approvals.admin import administered, client_page
from hitl_approvals.admin.base import DeskAdmin, View, person
from hitl_approvals.admin.client_forms import ClientForm
from hitl_approvals.admin.text import plain, show
from hitl_approvals.exceptions import HitlApprovalsError, NotFound
from hitl_approvals.models import AgentClient

Page = Callable[[DeskAdmin], View]
OVERLAPS: dict[str, timedelta | None] = {
    "0": None,
    "1": timedelta(hours=1),
    "24": timedelta(hours=24),
}
"""How long the old token may be good beside the new one, by hours."""


def show_client(
    desk: DeskAdmin,
    request: HttpRequest,
    client_id: Any,
    *,
    fault: str = "",
    kept: str = "",
    status: int = 200,
) -> HttpResponse:
    """Render the page of a client; changes nothing.

    Args:
        desk: The model admin that the page belongs to.
        request: The request.
        client_id: The client.
        fault: Why no new token was made, if one was asked for.
        kept: For how many hours the old one should have been good.
        status: HTTP status of the answer.
    """
    client = find(request, client_id)
    now = timezone.now()
    context = client_page.detail(desk, client, now)
    active = client.revoked_at is None
    context |= {
        "fault": fault,
        "kept": kept,
        "overlaps": _overlap_words(),
        "rotate_url": desk.link("rotate", client.pk) if active else "",
        "revoke_url": desk.link("revoke", client.pk) if active else "",
        "limits_url": desk.link("limits", client.pk) if active else "",
        "history_url": desk.link("history", client.pk),
    }
    if fault:
        context["title"] = _("Error: %s") % context["title"]
    return desk.page(request, "client.html", context, status=status)


def find(request: HttpRequest, client_id: Any) -> AgentClient:
    """Return a client, for whoever may administer.

    Raises:
        Http404: There is none, or this person may not see it.
    """
    return administered.find(AgentClient.objects.all(), request, client_id)


def add_page(desk: DeskAdmin) -> View:
    """Return the view that makes a client."""

    def view(request: HttpRequest) -> HttpResponse:
        if not permissions.may_administer(person(request)):
            return desk.forbidden(request, permissions.why_not_administer())
        posted = request.method == "POST"
        form = ClientForm(request.POST if posted else None)
        if not (posted and form.is_valid()):
            return _form(desk, request, form)
        return _make(desk, request, form)

    return view


@sensitive_variables("token")
def _make(desk: DeskAdmin, request: HttpRequest, form: ClientForm) -> HttpResponse:
    try:
        client, token = services.create_client(
            form.cleaned_data["name"],
            queue=form.cleaned_data["queue"],
            limits=form.limits(),
            by=person(request),
        )
    except HitlApprovalsError as error:
        form.add_error(None, error.detail)
        return _form(desk, request, form)
    desk.log_addition(request, client, _("The client was made."))
    return _shown_once(desk, request, client, token)


def _rotate_page(desk: DeskAdmin) -> View:
    @sensitive_variables("token")
    def view(request: HttpRequest, client_id: UUID) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseRedirect(desk.link("change", client_id))
        client = find(request, client_id)
        hours = request.POST.get("keep", "" if client.token_hint else "0")
        if hours not in OVERLAPS:
            fault = _("Say for how long the old token is good.")
            return show_client(desk, request, client_id, fault=fault)
        try:
            client, token = services.rotate_token(
                client.pk,
                by=person(request),
                keep_old_for=OVERLAPS[hours],
                seen=request.POST.get("seen", "")[:64],
            )
        except NotFound as error:
            raise Http404(error.detail) from error
        except HitlApprovalsError as error:
            return show_client(
                desk, request, client_id, fault=error.detail, kept=hours, status=409
            )
        desk.log_change(request, client, _("It was given a new token."))
        return _shown_once(desk, request, client, token, renewed=True)

    return view


def _revoke_page(desk: DeskAdmin) -> View:
    def view(request: HttpRequest, client_id: UUID) -> HttpResponse:
        client = find(request, client_id)
        if client.revoked_at is not None:
            # A second click, or somebody was faster: it is as it was asked to be.
            words = _("The client is revoked.")
        elif request.method != "POST":
            return _ask_to_revoke(desk, request, client)
        else:
            try:
                client = services.revoke_client(client.pk, by=person(request))
            except NotFound as error:
                raise Http404(error.detail) from error
            words = _("The client was revoked.")
            desk.log_change(request, client, words)
        desk.message_user(request, words, messages.SUCCESS)
        return HttpResponseRedirect(desk.link("change", client.pk))

    return view


def _ask_to_revoke(
    desk: DeskAdmin, request: HttpRequest, client: AgentClient
) -> HttpResponse:
    context = {
        "title": _("Revoke %s") % plain(client.name, 60),
        **_named(desk, client),
        "counts": client_page.counts(client),
        "revoke_url": desk.link("revoke", client.pk),
    }
    return desk.page(request, "client_revoke.html", context)


def _limits_page(desk: DeskAdmin) -> View:
    def view(request: HttpRequest, client_id: UUID) -> HttpResponse:
        client = find(request, client_id)
        posted = request.method == "POST"
        form = ClientForm(request.POST if posted else None, client)
        if not (posted and form.is_valid()):
            return _form(desk, request, form, client)
        try:
            client = services.change_client(
                client.pk,
                by=person(request),
                queue=form.cleaned_data["queue"],
                limits=form.limits(),
            )
        except NotFound as error:
            raise Http404(error.detail) from error
        except HitlApprovalsError as error:
            form.add_error(None, error.detail)
            return _form(desk, request, form, client)
        desk.log_change(request, client, _changed(form))
        desk.message_user(request, _("The client was changed."), messages.SUCCESS)
        return HttpResponseRedirect(desk.link("change", client.pk))

    return view


PAGES: dict[str, Page] = {
    "limits": _limits_page,
    "revoke": _revoke_page,
    "rotate": _rotate_page,
}
"""What can be done to a client, by the last part of the address."""


def _form(
    desk: DeskAdmin,
    request: HttpRequest,
    form: ClientForm,
    client: AgentClient | None = None,
) -> HttpResponse:
    title = _("New agent client")
    if client is not None:
        title = _("Queue and limits of %s") % plain(client.name, 60)
    context = {
        "title": _("Error: %s") % title if form.errors else title,
        "heading": title,
        "form": form,
        **(_named(desk, client) if client is not None else {}),
        "form_url": desk.link("limits", client.pk) if client else desk.link("add"),
    }
    return desk.page(request, "client_form.html", context)


class _Unprinted(str):
    """A text that no report of an error prints, whichever frame holds it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<hidden>"


@sensitive_variables("token", "context")
def _shown_once(
    desk: DeskAdmin,
    request: HttpRequest,
    client: AgentClient,
    token: str,
    *,
    renewed: bool = False,
) -> HttpResponse:
    """Render a token as the answer itself; the views say that nothing may store it."""
    until = client_page.until_words(client.previous_until, timezone.now())
    context = {
        "title": _("The token of %s") % plain(client.name, 60),
        **_named(desk, client),
        "token": _Unprinted(token),
        "renewed": renewed,
        "until": until if renewed else "",
    }
    return desk.page(request, "client_token.html", context)


def _named(desk: DeskAdmin, client: AgentClient) -> dict[str, Any]:
    return {
        "client": client,
        "name": show(client.name, limit=100, one_line=True).html,
        "row_url": desk.link("change", client.pk),
    }


def _changed(form: ClientForm) -> str:
    names = dict.fromkeys(one.removesuffix("_none") for one in form.changed_data)
    if not names:
        return _("Nothing was changed.")
    return _("Changed: %s") % ", ".join(str(form.fields[one].label) for one in names)


def _overlap_words() -> list[tuple[str, str]]:
    return [
        ("0", pgettext("old token", "not at all: it leaked, or nothing uses it")),
        ("1", pgettext("old token", "for an hour")),
        ("24", pgettext("old token", "for a day")),
    ]

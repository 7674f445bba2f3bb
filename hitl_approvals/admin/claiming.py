"""Posted claims, releases, assignments and reveals, and the pages that answer them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _

from hitl_approvals import permissions, services
from hitl_approvals.admin import hands, parsing
from hitl_approvals.admin.base import DeskAdmin, person
from hitl_approvals.admin.deciding import show_page
from hitl_approvals.admin.forms import AnswerForm
from hitl_approvals.admin.passes import with_pass
from hitl_approvals.admin.submissions import Sent, find
from hitl_approvals.enums import Door, InterruptKind
from hitl_approvals.exceptions import (
    ClaimedByAnother,
    InterruptNotFound,
    PayloadRejected,
    ReviewerNotAllowed,
    SnapshotMismatch,
    TransitionNotAllowed,
)
from hitl_approvals.models import PendingInterrupt

VIA = Door.ADMIN.value


def claim_view(
    desk: DeskAdmin, request: HttpRequest, interrupt_id: UUID
) -> HttpResponse:
    """Take a row in hand; a GET only leads to its page."""

    def take(row: PendingInterrupt) -> None:
        services.claim(row.pk, by=person(request), via=VIA)

    return _post(desk, request, interrupt_id, take)


def release_view(
    desk: DeskAdmin, request: HttpRequest, interrupt_id: UUID
) -> HttpResponse:
    """Let a row go; a GET only leads to its page."""

    def let_go(row: PendingInterrupt) -> None:
        services.release(row.pk, by=person(request), via=VIA)

    return _post(desk, request, interrupt_id, let_go)


def assign_view(
    desk: DeskAdmin, request: HttpRequest, interrupt_id: UUID
) -> HttpResponse:
    """Give a row to somebody of its queue; a GET only leads to its page."""

    def give(row: PendingInterrupt) -> None:
        user, key = person(request), request.POST.get("to", "")
        # Before anybody is looked up: who may not assign learns of nobody.
        permissions.require_assign(user, row)
        people = permissions.people_of(row)
        to = next((one for one in people if str(one.pk) == key), None)
        if to is None:
            raise PayloadRejected(_("Choose whom to give it to."))
        services.assign(row.pk, to, by=user, via=VIA)

    return _post(desk, request, interrupt_id, give)


def reveal_view(
    desk: DeskAdmin, request: HttpRequest, interrupt_id: UUID
) -> HttpResponse:
    """Show the hidden arguments in this one answer; a GET only leads to the page."""
    row = find(request, interrupt_id)
    if request.method != "POST":
        return HttpResponseRedirect(desk.link("change", row.pk))
    try:
        services.reveal(row.pk, by=person(request), via=VIA)
    except ReviewerNotAllowed as error:
        return desk.forbidden(request, error.detail)
    except InterruptNotFound as error:
        raise Http404(error.detail) from error
    except (SnapshotMismatch, TransitionNotAllowed) as error:
        return _again(desk, request, find(request, row.pk), alerts=[error.detail])
    return _again(desk, request, find(request, row.pk), revealed=True)


def _post(
    desk: DeskAdmin,
    request: HttpRequest,
    interrupt_id: UUID,
    work: Callable[[PendingInterrupt], None],
) -> HttpResponse:
    row = find(request, interrupt_id)
    place = with_pass(request, desk.link("change", row.pk))
    if request.method != "POST":
        return HttpResponseRedirect(place)
    try:
        work(row)
    except ReviewerNotAllowed as error:
        return desk.forbidden(request, error.detail)
    except InterruptNotFound as error:
        raise Http404(error.detail) from error
    except ClaimedByAnother as error:
        fresh = find(request, row.pk)
        told = hands.sentence(fresh, person(request), timezone.now())
        return _again(desk, request, fresh, alerts=[told or error.detail])
    except (PayloadRejected, TransitionNotAllowed) as error:
        return _again(desk, request, find(request, row.pk), alerts=[error.detail])
    if _typed(request):
        return _again(desk, request, find(request, row.pk))
    return HttpResponseRedirect(place)


def _typed(request: HttpRequest) -> bool:
    """Tell whether the form that the button stands in holds something to keep."""
    own = ("reason", "canned", "note", "result")
    return any(
        str(value).strip()
        for name, value in request.POST.items()
        if name in own or (name.startswith("f") and name[1:2].isdecimal())
    )


def _again(
    desk: DeskAdmin, request: HttpRequest, row: PendingInterrupt, **shown: Any
) -> HttpResponse:
    """Render the page of a row with all that was typed on it."""
    sent = Sent.read(request)
    form = None
    if row.kind == InterruptKind.QUESTION and _typed(request):
        form = AnswerForm(row.response_schema)
        form.read(request.POST)
    return show_page(
        desk,
        request,
        row,
        reason=sent.reason,
        canned=sent.canned,
        form=form,
        settling={
            "answer": request.POST.get("answer", ""),
            "note": parsing.lines(request.POST.get("note", "")),
            "result": parsing.lines(request.POST.get("result", "")),
            "errors": {},
        },
        **shown,
    )

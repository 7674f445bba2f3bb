"""Settling a call in doubt: it happened, run it again, or give up on finding out."""

from __future__ import annotations

from typing import Any, Literal, cast
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from hitl_approvals import selectors, services
from hitl_approvals.admin import parsing
from hitl_approvals.admin.base import DeskAdmin, person
from hitl_approvals.admin.deciding import show_page
from hitl_approvals.admin.submissions import Sent, find, onward, stale
from hitl_approvals.admin.text import plain
from hitl_approvals.enums import Door, EventType, InterruptStatus
from hitl_approvals.exceptions import (
    ClaimedByAnother,
    InterruptNotFound,
    PayloadRejected,
    ReviewerNotAllowed,
    StaleReview,
    TransitionNotAllowed,
)
from hitl_approvals.models import PendingInterrupt

Answer = Literal["happened", "run_again", "give_up"]

_EVENTS: dict[str, str] = {
    "happened": EventType.SETTLED_HAPPENED,
    "run_again": EventType.SETTLED_RUN_AGAIN,
    "give_up": EventType.SETTLED_GAVE_UP,
}


def settle_view(
    desk: DeskAdmin, request: HttpRequest, interrupt_id: UUID
) -> HttpResponse:
    """Take what somebody found out; a GET only leads to the page."""
    row = find(request, interrupt_id)
    if request.method != "POST":
        return HttpResponseRedirect(desk.link("change", row.pk))
    sent = Sent.read(request, "settle")
    typed = _typed(request)
    if row.status != InterruptStatus.IN_DOUBT or sent.revision != row.revision:
        if _mine_already(request, row, typed["answer"]):
            return onward(desk, request, row)
        sent.reason = typed["note"]
        return stale(desk, request, row.pk, sent)
    result = _check(row, typed)
    if typed["errors"]:
        return show_page(desk, request, row, settling=typed)
    try:
        services.settle(
            row.pk,
            cast("Answer", typed["answer"]),
            by=person(request),
            via=Door.ADMIN.value,
            result=result,
            note=typed["note"],
            revision=sent.revision,
        )
    except ReviewerNotAllowed as error:
        return desk.forbidden(request, error.detail)
    except InterruptNotFound as error:
        raise Http404(error.detail) from error
    except (ClaimedByAnother, StaleReview, TransitionNotAllowed) as error:
        fresh = find(request, row.pk)
        held = isinstance(error, ClaimedByAnother)
        if held or fresh.revision != sent.revision:
            sent.reason = typed["note"]
            return stale(desk, request, row.pk, sent)
        typed["errors"] = {"": error.detail}
        return show_page(desk, request, fresh, settling=typed)
    except PayloadRejected as error:
        typed["errors"] = {"result": error.detail}
        return show_page(desk, request, row, settling=typed)
    words = f"{EventType(_EVENTS[typed['answer']]).label}: {plain(row.tool_name)}"
    desk.log_change(request, row, words)
    desk.message_user(request, words, messages.SUCCESS)
    return onward(desk, request, row)


def _typed(request: HttpRequest) -> dict[str, Any]:
    data = request.POST
    return {
        "answer": data.get("answer", ""),
        "note": parsing.lines(data.get("note", "")).strip(),
        "result": parsing.lines(data.get("result", "")),
        "as_json": data.get("as") == "json",
        "looked": bool(data.get("looked")),
        "errors": {},
    }


def _check(row: PendingInterrupt, typed: dict[str, Any]) -> Any:
    """Note what is missing, and return the result that was typed."""
    errors: dict[str, str] = typed["errors"]
    if typed["answer"] not in _EVENTS:
        errors[""] = _("Choose one of the three.")
        return None
    if not typed["note"]:
        errors["note"] = _("Say how you know; it is kept in the timeline.")
    elif "\x00" in typed["note"]:
        errors["note"] = _("This text cannot be stored.")
    if typed["answer"] == "run_again" and not typed["looked"]:
        errors["looked"] = _("Look first, then tick this.")
    if typed["answer"] != "happened":
        return None
    try:
        return _result(row, typed)
    except (parsing.Unreadable, PayloadRejected) as error:
        errors["result"] = getattr(error, "detail", str(error))
        return None


def _result(row: PendingInterrupt, typed: dict[str, Any]) -> Any:
    """Return the result as the agent will get it.

    Raises:
        Unreadable: It is not JSON.
        PayloadRejected: It is not what the tool returns.
    """
    value = parsing.json_value(typed["result"]) if typed["as_json"] else typed["result"]
    if value == "":
        raise parsing.Unreadable(_("Type what the call returned."))
    tool = selectors.tool_of(row)
    if tool is not None:
        tool.signature.load_result(value)
    return value


def _mine_already(request: HttpRequest, row: PendingInterrupt, answer: str) -> bool:
    """Tell whether this very answer was recorded just now: a second click."""
    last = selectors.events_of(row).filter(type__in=list(_EVENTS.values())).last()
    return (
        last is not None
        and row.status != InterruptStatus.IN_DOUBT
        and last.type == _EVENTS.get(answer)
        and last.actor_id == str(person(request).pk)
    )

"""The page of one interrupt, and the decisions that are posted from it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _

from hitl_approvals import permissions, selectors
from hitl_approvals.admin import (
    call_page,
    delivery_page,
    forking,
    hands,
    panels,
    passes,
    pressing,
    reasons,
    sections,
    values,
)
from hitl_approvals.admin.base import DeskAdmin, person
from hitl_approvals.admin.forms import AnswerForm
from hitl_approvals.admin.submissions import REFUSED, Sent, find, record
from hitl_approvals.decisions import Approve, Decision, Reject, Respond
from hitl_approvals.enums import DecisionType, InterruptStatus
from hitl_approvals.exceptions import (
    DecisionNotAllowed,
    InterruptNotFound,
    PayloadRejected,
    ReviewerNotAllowed,
)
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.types import Person


class _Unfinished(Exception):
    """The form lacks something; it goes back with what was typed."""


def show_page(
    desk: DeskAdmin,
    request: HttpRequest,
    row: PendingInterrupt,
    *,
    alerts: list[str] | None = None,
    reason: str = "",
    reason_error: str = "",
    form: AnswerForm | None = None,
    settling: dict[str, Any] | None = None,
    canned: str = "",
    revealed: bool = False,
) -> HttpResponse:
    """Render the page of an interrupt; changes nothing.

    Args:
        desk: The model admin that the page belongs to.
        request: The request.
        row: What it is about.
        alerts: Why nothing was recorded, if something was sent.
        reason: What was typed as reason.
        reason_error: What is wrong with the reason.
        form: The answer as far as it was typed, for a question.
        settling: What was typed to settle a doubt.
        canned: Which of the site's reasons was chosen.
        revealed: Whether hidden arguments are shown this once.
    """
    user, now = person(request), timezone.now()
    page = call_page.read_page(desk, row, now, revealed=revealed)
    in_doubt = row.status == InterruptStatus.IN_DOUBT
    panel = panels.panel(page, user)
    if page.is_question and panel["open"] and form is None:
        form = AnswerForm(row.response_schema)
    following = selectors.next_open(user, row)
    before = selectors.previous_open(user, row) if following else None
    faulty = bool(alerts or reason_error or (form and form.fault_count))
    title = _("Error: %s") % page.title if faulty else page.title
    context = {
        "title": title,
        "page": page,
        "row": row,
        "panel": panel,
        "form": form,
        "alerts": alerts or [],
        "reason": reason,
        "reason_error": reason_error,
        "reasons": reasons.choices(),
        "canned": canned,
        "hands": hands.controls(desk, request, row, user, now),
        "reveal_url": _reveal_url(desk, page, user, revealed=revealed),
        "revealed": revealed,
        "skip_url": passes.skip_url(desk, request, row) if panel["open"] else "",
        "faulty": faulty,
        "decision": panels.decision_of(page)
        if row.status not in (InterruptStatus.PENDING, InterruptStatus.IN_DOUBT)
        else None,
        "decide_url": passes.with_pass(request, desk.link("decide", row.pk)),
        "edit_url": passes.with_pass(request, desk.link("edit", row.pk)),
        "settle_url": desk.link("settle", row.pk),
        "full_url": desk.link("full", row.pk),
        "forks": forking.descendants(desk, row, user),
        "told_url": delivery_page.url_about(desk, user, row),
        "history_url": desk.link("history", row.pk),
        "turn_url": desk.link("change", row.turn_id, model="agentturn")
        if row.turn_id
        else "",
        "next_url": desk.link("change", following.pk) if following else "",
        "previous_url": desk.link("change", before.pk) if before else "",
        "note": done_note(desk, request),
        "sections": sections.added(desk, request, row),
    }
    if in_doubt:
        context["doubt"] = panels.doubt(page)
        context["settling"] = settling or {}
        context["settle_missing"] = _settle_missing(request, row) or (
            panel["held"] if panel["blocked"] else ""
        )
    template = "interrupt_in_doubt.html" if in_doubt else "interrupt.html"
    return desk.page(request, template, context)


def done_note(desk: DeskAdmin, request: HttpRequest) -> dict[str, Any] | None:
    """Return the line about the decision that led here, if the address names one."""
    done = request.GET.get("done", "")
    if not done:
        return None
    try:
        row = selectors.interrupt_get(done, person(request))
    except InterruptNotFound:
        return None
    return panels.note_of(row, person(request), desk, timezone.now())


def decide_view(
    desk: DeskAdmin, request: HttpRequest, interrupt_id: UUID
) -> HttpResponse:
    """Take a posted approval, rejection or answer; a GET only leads to the page."""
    row = find(request, interrupt_id)
    if request.method != "POST":
        return HttpResponseRedirect(desk.link("change", row.pk))
    sent = Sent.read(request)
    form: AnswerForm | None = None
    if sent.verb == DecisionType.RESPOND or pressing.pressed(request.POST):
        form = AnswerForm(row.response_schema)
        form.read(request.POST)
    typed: dict[str, Any] = {
        "reason": sent.reason,
        "canned": sent.canned,
        "form": form,
    }
    if form is not None and pressing.pressed(request.POST):
        pressing.press(form, request.POST)
        return show_page(desk, request, row, **typed)
    try:
        decision = _decision(sent, form)
        return record(desk, request, row, decision, sent)
    except _Unfinished as error:
        return show_page(desk, request, row, reason_error=str(error), **typed)
    except PayloadRejected as error:
        if form is None:
            return show_page(desk, request, row, alerts=[error.detail], **typed)
        form.place(error.errors)
        return show_page(desk, request, row, **typed)
    except REFUSED as error:
        return show_page(desk, request, row, alerts=[error.detail], **typed)


def _decision(sent: Sent, form: AnswerForm | None) -> Decision:
    """Return what was meant.

    Raises:
        _Unfinished: The reason is missing or cannot be stored.
        PayloadRejected: The answer cannot be read; the form says where.
        DecisionNotAllowed: No such decision.
    """
    if sent.verb == DecisionType.APPROVE:
        return Approve()
    if sent.verb == DecisionType.REJECT:
        if not reasons.is_offered(sent.canned):
            raise _Unfinished(_("This saved reason is not offered any more."))
        if not sent.told.strip():
            raise _Unfinished(_("Say why, so that the agent can do better."))
        try:
            return Reject(sent.told)
        except TypeError as error:
            raise _Unfinished(str(error)) from error
    if form is not None:
        value = form.answer()
        if form.fault_count:
            raise PayloadRejected
        sent.answer = values.render(value, values.Tally())
        return Respond(value)
    raise DecisionNotAllowed(_("Choose what to do with this interrupt."))


def _reveal_url(
    desk: DeskAdmin, page: call_page.CallPage, user: Person, *, revealed: bool
) -> str:
    """Return where hidden arguments are asked for; empty if they are not offered."""
    hidden = page.table is not None and page.table.secrets > 0
    under_way = page.row.status == InterruptStatus.DECIDED
    if revealed or not hidden or under_way or not permissions.may_reveal(user):
        return ""
    return desk.link("reveal", page.row.pk)


def _settle_missing(request: HttpRequest, row: PendingInterrupt) -> str:
    try:
        permissions.require_settle(person(request), row)
    except ReviewerNotAllowed as error:
        return error.detail
    return ""

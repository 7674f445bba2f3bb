"""Editing a call before it is approved: step 1 the form, step 2 what would change."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid4

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _

from hitl_approvals import canonical, permissions, selectors
from hitl_approvals.admin import (
    arguments,
    call_page,
    diffs,
    forms,
    groups,
    parsing,
    passes,
    pressing,
    values,
    widgets,
)
from hitl_approvals.admin import queue_rows as rows
from hitl_approvals.admin.base import DeskAdmin, person
from hitl_approvals.admin.shapes import MISSING
from hitl_approvals.admin.submissions import REFUSED, Sent, find, record, stale
from hitl_approvals.admin.text import plain, show
from hitl_approvals.decisions import Edit
from hitl_approvals.enums import DecisionType, InterruptStatus
from hitl_approvals.exceptions import (
    PayloadRejected,
)
from hitl_approvals.models import PendingInterrupt

REVIEW, PRESS, CHANGE, APPROVE = "review", "press", "change", "approve"
_TYPED = re.compile(r"f[0-9]")


def edit_view(
    desk: DeskAdmin, request: HttpRequest, interrupt_id: UUID
) -> HttpResponse:
    """Show the edit form, check what was typed, or take the confirmed edit."""
    row = find(request, interrupt_id)
    missing = permissions.why_not(person(request), row)
    if missing is not None:
        return desk.forbidden(request, missing)
    call = arguments.read(row)
    form = forms.edit_form(call)
    if request.method != "POST":
        offered = DecisionType.EDIT in row.allowed_decisions and call.intact
        held = selectors.in_the_way_of(person(request), row, timezone.now())
        if row.status != InterruptStatus.PENDING or not offered or held:
            place = passes.with_pass(request, desk.link("change", row.pk))
            return HttpResponseRedirect(place)
        return _step_one(desk, request, row, form)
    sent = Sent.read(request, DecisionType.EDIT.value)
    steps = {PRESS: _press, CHANGE: _change, APPROVE: _approve}
    inside = pressing.pressed(request.POST)
    step = PRESS if inside else request.POST.get("step", REVIEW)
    return steps.get(step, _review)(desk, request, row, call, form, sent)


def _press(
    desk: DeskAdmin,
    request: HttpRequest,
    row: PendingInterrupt,
    call: arguments.CallArguments,
    form: forms.SchemaForm,
    sent: Sent,
) -> HttpResponse:
    form.read(request.POST)
    pressing.press(form, request.POST)
    return _step_one(desk, request, row, form, sent)


def _review(
    desk: DeskAdmin,
    request: HttpRequest,
    row: PendingInterrupt,
    call: arguments.CallArguments,
    form: forms.SchemaForm,
    sent: Sent,
) -> HttpResponse:
    form.read(request.POST)
    edited = form.values()
    if _moved(row, sent):
        sent.diff = [one for one in diffs.rows(call, edited) if one.changed]
        return stale(desk, request, row.pk, sent)
    unchanged = widgets.same(edited, call.given)
    if not form.fault_count and not unchanged:
        form.place(forms.misfits(row, edited))
    if form.fault_count:
        return _step_one(desk, request, row, form, sent)
    return _step_two(desk, request, row, call, form, edited, sent)


def _change(
    desk: DeskAdmin,
    request: HttpRequest,
    row: PendingInterrupt,
    call: arguments.CallArguments,
    form: forms.SchemaForm,
    sent: Sent,
) -> HttpResponse:
    form.read(request.POST)
    return _step_one(desk, request, row, form, sent)


def _approve(
    desk: DeskAdmin,
    request: HttpRequest,
    row: PendingInterrupt,
    call: arguments.CallArguments,
    form: forms.SchemaForm,
    sent: Sent,
) -> HttpResponse:
    edited = _carried(request, form)
    form.read(request.POST)
    if edited is None:
        form.errors = [_("What you had edited did not arrive; look at it again.")]
        return _step_one(desk, request, row, form, sent)
    sent.diff = [one for one in diffs.rows(call, edited) if one.changed]
    try:
        return record(desk, request, row, Edit(edited, sent.reason), sent)
    except PayloadRejected as error:
        form.place(error.errors or [{"loc": "", "message": error.detail}])
    except REFUSED as error:
        form.errors = [error.detail]
    except TypeError as error:  # a reason that no column can hold
        form.errors = [str(error)]
    return _step_one(desk, request, row, form, sent)


def _moved(row: PendingInterrupt, sent: Sent) -> bool:
    pending = row.status == InterruptStatus.PENDING
    over = row.expires_at is not None and row.expires_at <= timezone.now()
    return not pending or over or sent.revision != row.revision


def _carried(request: HttpRequest, form: forms.SchemaForm) -> dict[str, Any] | None:
    """Return the edited arguments that step 2 carries, with the locked ones put in."""
    try:
        given = parsing.json_value(request.POST.get("args", ""))
    except parsing.Unreadable:
        return None
    if not isinstance(given, dict):
        return None
    locked = form.kept | {one.name: one.original for one in form.fields if one.locked}
    kept = {name: value for name, value in given.items() if name not in locked}
    present = {name: value for name, value in locked.items() if value is not MISSING}
    return {**kept, **present}


def _head(
    desk: DeskAdmin, request: HttpRequest, row: PendingInterrupt, sent: Sent | None
) -> dict[str, Any]:
    now = timezone.now()
    return {
        "row": row,
        "tool": show(row.tool_name, limit=80, one_line=True).html,
        "head": rows.list_row(row, desk.link("change", row.pk), now),
        "row_url": passes.with_pass(request, desk.link("change", row.pk)),
        "edit_url": passes.with_pass(request, desk.link("edit", row.pk)),
        "crumb": plain(row.tool_name, 60),
        "reason": sent.reason if sent else "",
        "revision": sent.revision
        if sent and sent.revision is not None
        else row.revision,
        "key": (sent.key if sent else "") or uuid4(),
        "zone": widgets.zone_name(),
    }


def _step_one(
    desk: DeskAdmin,
    request: HttpRequest,
    row: PendingInterrupt,
    form: forms.SchemaForm,
    sent: Sent | None = None,
) -> HttpResponse:
    title = _("Edit %s") % plain(row.tool_name, 60)
    if form.fault_count:
        title = _("Error: %s") % title
    call = arguments.read(row)
    room = arguments.PAGE_ROOM
    shown = []
    for one in form.fields:
        proposed = _proposed(call, one, room)
        room -= proposed["taken"]
        shown.append((one, proposed))
    context = {
        **_head(desk, request, row, sent),
        "title": title,
        "form": form,
        "shown": shown,
    }
    return desk.page(request, "edit.html", context)


def _proposed(
    call: arguments.CallArguments, field: groups.Node, room: int
) -> dict[str, Any]:
    """Return what the agent proposed for a field, to stand beside it."""
    tally = values.Tally(room=max(min(values.ROOM, room), 0))
    before = tally.room
    given = field.original is not MISSING
    secret = field.locked == "secret"
    shape = call.shape(field.name)
    return {
        "html": arguments.value_html(call, field.name, field.original, tally)
        if given and not secret
        else None,
        "note": tally.note(),
        "given": given,
        "changed": field.changed,
        "limits": shape.limits,
        "in_part": tally.in_part,
        "taken": before - tally.room,
    }


def _step_two(
    desk: DeskAdmin,
    request: HttpRequest,
    row: PendingInterrupt,
    call: arguments.CallArguments,
    form: forms.SchemaForm,
    edited: dict[str, Any],
    sent: Sent,
) -> HttpResponse:
    found = diffs.rows(call, edited)
    changed, total = diffs.counts(call, edited)
    carried = {
        one.name: edited[one.name]
        for one in form.fields
        if not one.locked and one.name in edited
    }
    context = {
        **_head(desk, request, row, sent),
        "title": _("Confirm your edit of %s") % plain(row.tool_name, 60),
        "diff": found,
        "changed": changed,
        "total": total,
        "not_shown": diffs.not_shown(total, changed),
        "typed": [one for one in request.POST.items() if _TYPED.match(one[0])],
        "args": canonical.dumps(carried, max_bytes=None, max_depth=None),
        "digest": call_page.digest_of(edited),
        "fits": not forms.misfits(row, edited) or not changed,
    }
    return desk.page(request, "confirm.html", context)

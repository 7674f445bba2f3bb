"""What became of each call that was decided together with others; told by the rows.

The address names rows and the kind of each answer. Every sentence is ours, and that
something was recorded is said only if the audit trail says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hitl_approvals import permissions, selectors
from hitl_approvals.admin import arguments, bulk_rows, history, queue_rows
from hitl_approvals.admin.base import DeskAdmin, person
from hitl_approvals.admin.text import show, val
from hitl_approvals.admin.times import moment
from hitl_approvals.enums import DecisionType, EventType, InterruptStatus
from hitl_approvals.exceptions import (
    AlreadyDecided,
    ClaimedByAnother,
    DecisionNotAllowed,
    InterruptCancelled,
    InterruptExpired,
    KeyReused,
    ReviewerNotAllowed,
    SnapshotMismatch,
    StaleReview,
    TransitionNotAllowed,
)
from hitl_approvals.models import InterruptEvent, PendingInterrupt
from hitl_approvals.types import Person

DONE = "ok"
MOST = 200
"""Rows that an address may name."""
_EVENTS: dict[str, str] = {
    DecisionType.APPROVE: EventType.APPROVED,
    DecisionType.REJECT: EventType.REJECTED,
}


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One line of the outcome."""

    name: SafeString
    url: str
    pairs: SafeString | None
    is_question: bool
    done: bool
    words: str
    badge: str
    why: SafeString | None
    since: SafeString


def query(verb: str, codes: Mapping[UUID, str], left_out: Sequence[UUID]) -> str:
    """Return the query string of the outcome's page."""
    fields = [("do", verb)]
    fields += [("row", f"{key}:{code}") for key, code in codes.items()]
    fields += [("out", str(key)) for key in left_out]
    return urlencode(fields)


def outcome_view(desk: DeskAdmin, request: HttpRequest) -> HttpResponse:
    """Tell what became of each call; a reload follows them until they are resolved."""
    user, now = person(request), timezone.now()
    verb, codes = request.GET.get("do", ""), _read(request.GET.getlist("row"))
    if verb not in _EVENTS or not codes:
        return HttpResponseRedirect(desk.link("changelist"))
    left_out = list(_read(request.GET.getlist("out")))
    found = permissions.visible_to(user).filter(pk__in=[*codes, *left_out])
    rows = found.select_related("turn", "queue", "client").in_bulk()
    recorded = _recorded(user, verb, list(codes))
    told = [
        _row(desk, user, rows[key], verb, code if key in recorded else _not(code), now)
        for key, code in codes.items()
        if key in rows
    ]
    done = sum(one.done for one in told)
    last = next((rows[key] for key in reversed(codes) if key in rows), None)
    following = selectors.next_open(user, last) if last is not None else None
    title = _title(verb, done, len(codes))
    context = {
        "title": title,
        "rows": told,
        "lost": len(codes) - len(told),
        "when": moment(max(recorded.values()), now) if recorded else None,
        "next_url": desk.link("change", following.pk) if following else "",
        "out": [
            {
                "name": show(bulk_rows.name_of(rows[key]), one_line=True).html,
                "url": desk.link("change", key),
            }
            for key in left_out
            if key in rows
        ],
    }
    return desk.page(request, "bulk_outcome.html", context)


def _recorded(user: Person, verb: str, keys: Sequence[UUID]) -> dict[UUID, datetime]:
    """Return when this person decided each row like this, from the audit trail."""
    events = InterruptEvent.objects.filter(
        subject_id__in=keys, type=_EVENTS[verb], actor_id=str(user.pk)
    )
    return dict(events.order_by("sequence").values_list("subject_id", "at"))


def _row(
    desk: DeskAdmin,
    user: Person,
    row: PendingInterrupt,
    verb: str,
    code: str,
    now: datetime,
) -> OutcomeRow:
    done = code == DONE
    approve = verb == DecisionType.APPROVE
    head = queue_rows.list_row(row, desk.link("change", row.pk), now)
    if done:
        words = history.decided_words(verb)
    else:
        words = _("Not approved") if approve else _("Not rejected")
    return OutcomeRow(
        name=head.label,
        url=head.url,
        pairs=head.pairs,
        is_question=head.is_question,
        done=done,
        words=words,
        badge=("ok" if approve else "quiet") if done else "no",
        why=None if done else _why(user, row, code, now),
        since=_since(row, now, done=done),
    )


def _since(row: PendingInterrupt, now: datetime, *, done: bool) -> SafeString:
    if row.status == InterruptStatus.PENDING and not done:
        return format_html("{}", _("still open"))
    if row.status == InterruptStatus.RESOLVED:
        return format_html("{} {}", history.since(row), moment(row.resolved_at, now))
    return format_html("{}", history.since(row))


def _why(user: Person, row: PendingInterrupt, code: str, now: datetime) -> SafeString:
    """Say why a decision was not recorded: who was faster, or what was in its way."""
    over = (AlreadyDecided.code, KeyReused.code)
    if code in over and row.decision is not None:
        return _faster(user, row, now)
    if code == ReviewerNotAllowed.code:
        missing = permissions.why_not(user, row) or _("You may not decide this.")
        return format_html("{}", missing)
    words: dict[str, str] = {
        InterruptExpired.code: _("The time to decide it had passed."),
        InterruptCancelled.code: _("It had been withdrawn."),
        StaleReview.code: _("It changed while you read it. Look at it again."),
        TransitionNotAllowed.code: _(
            "Whether it happened is in doubt; it is settled, not decided."
        ),
        DecisionNotAllowed.code: _("This decision is not offered for it."),
        SnapshotMismatch.code: _(
            "The stored arguments are not the ones that the agent asked for; nothing "
            "may run from them."
        ),
        ClaimedByAnother.code: _("Somebody else held it."),
        KeyReused.code: _("You had decided it before; that decision stood."),
    }
    return format_html("{}", words.get(code, _("It was not recorded.")))


def _faster(user: Person, row: PendingInterrupt, now: datetime) -> SafeString:
    """Say who had decided a row, what, when and why."""
    who: Any = _("you")
    if row.decided_by_id != user.pk:
        who = show(row.decided_by_label or _("nobody"), limit=80, one_line=True).html
    line = format_html(
        _("{what} by {who}, {door}, at {time}"),
        what=history.decided_words(row.decision),
        who=who,
        door=history.door(row.decided_via),
        time=moment(row.decided_at, now),
    )
    reason = arguments.read(row).redactor().clean(row.reason)
    if reason:
        quoted = val(reason, limit=400, one_line=True)
        return format_html("{}: <q>{}</q>", line, quoted)
    return format_html("{}.", line)


def _not(code: str) -> str:
    """Return an answer's kind for a row that the audit trail does not confirm."""
    return "" if code == DONE else code


def _title(verb: str, done: int, count: int) -> str:
    if verb == DecisionType.APPROVE:
        text = ngettext(
            "%(done)d of %(all)d call approved",
            "%(done)d of %(all)d calls approved",
            count,
        )
    else:
        text = ngettext(
            "%(done)d of %(all)d request rejected",
            "%(done)d of %(all)d requests rejected",
            count,
        )
    said = text % {"done": done, "all": count}
    if count > done:
        said = _("%(said)s, %(rest)d not") % {"said": said, "rest": count - done}
    return said


def _read(values: Sequence[str]) -> dict[UUID, str]:
    """Return rows and codes of an address; what cannot be read is not there."""
    found: dict[UUID, str] = {}
    for value in values[:MOST]:
        name, _colon, code = value.partition(":")
        try:
            found.setdefault(UUID(name), code)
        except ValueError:
            continue
    return found

"""A posted decision on its way to the service, and the pages that answer it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals import selectors, services
from hitl_approvals.admin import arguments, hands, history, parsing, passes, reasons
from hitl_approvals.admin.base import DeskAdmin, person
from hitl_approvals.admin.diffs import Difference
from hitl_approvals.admin.text import plain, show, val
from hitl_approvals.admin.times import moment, span, utc
from hitl_approvals.decisions import Decision
from hitl_approvals.enums import DecisionType, Door, InterruptStatus
from hitl_approvals.exceptions import (
    AlreadyDecided,
    ClaimedByAnother,
    DecisionNotAllowed,
    InterruptCancelled,
    InterruptExpired,
    InterruptNotFound,
    KeyReused,
    ReviewerNotAllowed,
    SnapshotMismatch,
    StaleReview,
    TransitionNotAllowed,
)
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.types import Person

TOO_LATE = (
    AlreadyDecided,
    InterruptCancelled,
    InterruptExpired,
    KeyReused,
    StaleReview,
)
"""Somebody or something was faster: the answer is the page that says who."""
REFUSED = (DecisionNotAllowed, SnapshotMismatch, TransitionNotAllowed)
"""The row is as it was seen, and this decision is not for it: its own page says why."""


@dataclass(slots=True)
class Sent:
    """What a person sent from one of the desk's forms."""

    verb: str
    revision: int | None
    key: str
    reason: str = ""
    canned: str = ""
    diff: list[Difference] = field(default_factory=list)
    answer: SafeString | None = None
    answer_raw: str = ""

    @classmethod
    def read(cls, request: HttpRequest, verb: str = "") -> Sent:
        """Read the fields that all forms share; never fails."""
        revision = request.POST.get("revision", "")
        return cls(
            verb=verb or request.POST.get("decision", ""),
            revision=int(revision)
            if revision.isdecimal() and len(revision) < 10
            else None,
            key=request.POST.get("key", "")[:200],
            reason=parsing.lines(request.POST.get("reason", "")),
            canned=request.POST.get("canned", "")[:1000],
        )

    @property
    def told(self) -> str:
        """The reason that is meant, from the site's list, by hand, or both."""
        return reasons.joined(self.canned, self.reason)

    @property
    def complete(self) -> bool:
        """Whether the form came with what it was rendered with."""
        return self.revision is not None and self.key != ""


def find(request: HttpRequest, interrupt_id: Any) -> PendingInterrupt:
    """Return a row that the logged-in person may see.

    Raises:
        Http404: There is none.
    """
    try:
        return selectors.interrupt_get(interrupt_id, person(request))
    except InterruptNotFound as error:
        raise Http404(error.detail) from error


def record(
    desk: DeskAdmin,
    request: HttpRequest,
    row: PendingInterrupt,
    decision: Decision,
    sent: Sent,
) -> HttpResponse:
    """Hand a decision to the service and answer with where to go, or why not.

    Raises:
        Http404: The row may not be seen any more.
        DecisionNotAllowed, PayloadRejected, SnapshotMismatch, TransitionNotAllowed,
            TypeError: Nothing was stored, and the form has to say so.
    """
    if not sent.complete:
        return stale(desk, request, row.pk, sent)
    try:
        receipt = services.decide(
            row.pk,
            decision,
            by=person(request),
            via=Door.ADMIN.value,
            revision=sent.revision,
            key=sent.key,
        )
    except ReviewerNotAllowed as error:
        return desk.forbidden(request, error.detail)
    except InterruptNotFound as error:
        raise Http404(error.detail) from error
    except (ClaimedByAnother, *TOO_LATE):
        return stale(desk, request, row.pk, sent)
    except TransitionNotAllowed:
        if find(request, row.pk).status == InterruptStatus.PENDING:
            raise
        return stale(desk, request, row.pk, sent)
    if not receipt.replayed:
        words = history.decided_words(receipt.decision)
        desk.log_change(request, row, f"{words}: {plain(row.tool_name) or row.kind}")
    return onward(desk, request, row)


def onward(
    desk: DeskAdmin, request: HttpRequest, row: PendingInterrupt
) -> HttpResponseRedirect:
    """Go to the next open interrupt, or to the list, and say there what was done."""
    start = passes.begun(request)
    return HttpResponseRedirect(
        passes.onward_url(desk, request, row, start, done=str(row.pk))
    )


def stale(
    desk: DeskAdmin, request: HttpRequest, interrupt_id: Any, sent: Sent
) -> HttpResponse:
    """Render the page that says who decided what, and keeps what was typed.

    Reads the row anew: what the loser saw is not what stands.

    Raises:
        Http404: The row may not be seen any more.
    """
    row = find(request, interrupt_id)
    now = timezone.now()
    user = person(request)
    following = selectors.next_open(user, row)
    decided = row.decision is not None or row.status == InterruptStatus.CANCELLED
    context = {
        "title": _title(row, user, now),
        "row": row,
        "tool": show(row.tool_name, limit=80, one_line=True).html,
        "agent": show(row.agent, limit=60, one_line=True).html,
        "requester": show(row.turn.requested_by_label, limit=60, one_line=True).html
        if row.turn and row.turn.requested_by_label
        else None,
        "refusal": _refusal(sent.verb),
        "decided": decided,
        "badge": history.badge(row),
        "words": history.decided_words(row.decision),
        "by": show(row.decided_by_label, limit=80, one_line=True).html,
        "by_you": row.decided_by_id == user.pk,
        "door": history.door(row.decided_via) if row.decided_via else "",
        "when": moment(row.decided_at, now),
        "when_utc": utc(row.decided_at) if row.decided_at else "",
        "before": span(now - row.decided_at) if row.decided_at else "",
        "reason": val(arguments.read(row).redactor().clean(row.reason))
        if row.reason
        else None,
        "since": history.since(row) if decided else "",
        "resolved": moment(row.resolved_at, now) if row.resolved_at else None,
        "sent_words": _sent_words(sent.verb),
        "sent_at": moment(now, now),
        "sent": sent,
        "typed_reason": val(sent.told) if sent.told.strip() else None,
        "held": hands.sentence(row, user, now),
        "next_url": desk.link("change", following.pk) if following else "",
        "row_url": desk.link("change", row.pk),
        "pending": row.status == InterruptStatus.PENDING,
    }
    blocked = selectors.in_the_way_of(user, row, now)
    return desk.page(request, "stale.html", context, status=423 if blocked else 409)


def _title(row: PendingInterrupt, user: Person, now: datetime) -> str:
    if selectors.in_the_way_of(user, row, now):
        return _("%s holds this now") % plain(selectors.holder_name(row), 80)
    over = row.expires_at is not None and row.expires_at <= now
    if row.status == InterruptStatus.IN_DOUBT:
        return _("%s may have run, or not") % plain(row.tool_name)
    if row.decision == DecisionType.EXPIRE or (
        row.status == InterruptStatus.PENDING and over
    ):
        return _("The time to decide this has passed")
    if row.status == InterruptStatus.PENDING:
        return _("This changed after you opened it")
    if row.decided_by_id == user.pk:
        return _("You decided this already")
    if row.decision is None:
        return _("This was withdrawn; there is nothing left to decide")
    who = plain(row.decided_by_label) or _("Somebody")
    return _("%s decided this before you") % who


def _refusal(verb: str) -> str:
    words: dict[str, str] = {
        DecisionType.APPROVE: _(
            "Your approval was not recorded, and nothing ran because of it."
        ),
        DecisionType.EDIT: _(
            "Your edit was not recorded, and nothing ran because of it."
        ),
        DecisionType.REJECT: _("Your rejection was not recorded."),
        DecisionType.RESPOND: _(
            "Your answer was not recorded, and the agent did not get it."
        ),
    }
    other = _("What you sent was not recorded, and nothing ran because of it.")
    return words.get(verb, other)


def _sent_words(verb: str) -> str:
    words: dict[str, str] = {
        DecisionType.APPROVE: _("Approve"),
        DecisionType.EDIT: _("Approve with an edit"),
        DecisionType.REJECT: _("Reject"),
        DecisionType.RESPOND: _("An answer"),
    }
    return words.get(verb, "")

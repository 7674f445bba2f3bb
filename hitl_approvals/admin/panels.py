"""What stands beside a call: the decision panel, the decision made, a doubt, a note."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals import permissions, selectors
from hitl_approvals.admin import arguments, conversation, diffs, hands, history, values
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.call_page import CallPage
from hitl_approvals.admin.text import plain, show
from hitl_approvals.admin.times import moment, utc
from hitl_approvals.enums import (
    DecisionType,
    InterruptStatus,
    StepStatus,
    TurnStatus,
)
from hitl_approvals.models import PendingInterrupt, TurnStep
from hitl_approvals.types import Person


def decision_of(page: CallPage) -> dict[str, Any]:
    """Return what was decided and what became of it, for a row that is not open."""
    row, now = page.row, page.now
    redactor = page.call.redactor()
    edited = row.decision == DecisionType.EDIT and row.decision_args_text is not None
    ran = arguments.read(row, text=row.decision_args_text) if edited else None
    return {
        "badge": history.badge(row),
        "words": history.decided_words(row.decision),
        "by": show(row.decided_by_label, limit=80, one_line=True).html,
        "door": history.door(row.decided_via) if row.decided_via else "",
        "when": moment(row.decided_at, now),
        "utc": utc(row.decided_at) if row.decided_at else "",
        "reason": conversation.quoted(row.reason, redactor),
        "answer": values.render(row.decision_value, values.Tally())
        if row.decision == DecisionType.RESPOND
        else None,
        "since": history.since(row),
        "resolved": moment(row.resolved_at, now) if row.resolved_at else None,
        "diff": diffs.rows(page.call, ran.given) if ran else None,
    }


def panel(page: CallPage, user: Person) -> dict[str, Any]:
    """Return what the decision panel needs, or the right that is missing."""
    row = page.row
    allowed = row.allowed_decisions if isinstance(row.allowed_decisions, list) else []
    missing = permissions.why_not(user, row)
    pending = row.status == InterruptStatus.PENDING
    over = row.expires_at is not None and row.expires_at <= page.now
    blocked = selectors.in_the_way_of(user, row, page.now)
    return {
        "held": hands.sentence(row, user, page.now),
        "blocked": blocked,
        "missing": missing if pending else None,
        "open": pending and missing is None and not over and not blocked,
        "over": pending and over,
        "may_approve": DecisionType.APPROVE in allowed and page.call.intact,
        "may_edit": DecisionType.EDIT in allowed and page.call.intact,
        "may_reject": DecisionType.REJECT in allowed,
        "may_respond": DecisionType.RESPOND in allowed,
        "revision": row.revision,
        "key": uuid4(),
        "who": plain(user.get_username()),
    }


def doubt(page: CallPage) -> dict[str, Any]:
    """Return what is known of a call in doubt, and when it may be run again."""
    row, now = page.row, page.now
    step: TurnStep | None = row.steps.order_by("-generation").first()
    turn = row.turn
    sent = row.consumed_at if step is None else step.started_at
    deadline = step.hard_deadline if step else None
    policy = row.policy if isinstance(row.policy, Mapping) else {}
    hint = str(policy.get("check_hint") or "")
    return {
        "step": step,
        "key": step.idempotency_key if step else None,
        "sent": moment(sent, now) if sent else None,
        "sent_utc": utc(sent) if sent else "",
        "remote": turn is None,
        "hint": show(hint, limit=400).html if hint else None,
        "deadline": deadline,
        "deadline_text": moment(deadline, now) if deadline else None,
        "early": deadline is not None and now < deadline,
        "turn_open": turn is not None
        and turn.status in (TurnStatus.SUSPENDED, TurnStatus.NEEDS_ATTENTION),
        "unknown": step is not None and step.status == StepStatus.UNKNOWN,
    }


def note_of(
    row: PendingInterrupt | None, user: Person, desk: DeskAdmin, now: datetime
) -> dict[str, Any] | None:
    """Return the line about this person's last decision and what became of it."""
    if row is None or row.decided_by_id != user.pk or row.decision is None:
        return None
    tool = show(row.tool_name, limit=80, one_line=True).html
    verbs: dict[str, SafeString] = {
        DecisionType.APPROVE: format_html(_("You approved {}."), _code(tool)),
        DecisionType.EDIT: format_html(_("You approved {} with an edit."), _code(tool)),
        DecisionType.REJECT: format_html(
            _("You rejected {}."), _code(tool) if tool else _("a question")
        ),
        DecisionType.RESPOND: format_html("{}", _("You answered a question.")),
    }
    words = verbs.get(row.decision)
    if words is None:
        return None
    return {
        "words": words,
        "trail": history.trail(row, now),
        "url": desk.link("change", row.pk),
    }


def _code(tool: SafeString) -> SafeString:
    return format_html('<code class="desk-tool">{}</code>', tool)

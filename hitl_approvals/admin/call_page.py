"""What the page of one interrupt shows, gathered in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals import canonical, permissions, selectors
from hitl_approvals.admin import (
    arguments,
    conversation,
    diffs,
    history,
    queue_rows,
    values,
)
from hitl_approvals.admin.arguments import ArgumentTable, CallArguments
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.text import plain, show
from hitl_approvals.admin.times import full, left, moment, utc
from hitl_approvals.enums import (
    DecisionType,
    InterruptKind,
    InterruptStatus,
    StepStatus,
    ToolMode,
)
from hitl_approvals.models import PendingInterrupt, TurnStep
from hitl_approvals.types import Person

LAST_MESSAGES = 6


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another call of the same turn."""

    name: SafeString
    url: str
    words: SafeString


@dataclass(slots=True)
class CallPage:
    """Everything that the page of one interrupt shows, except the forms."""

    row: PendingInterrupt
    call: CallArguments
    now: datetime
    title: str
    tool: SafeString
    summary: SafeString
    head: queue_rows.ListRow
    table: ArgumentTable | None
    json: SafeString | None
    digest: str
    full_digest: str
    asked: SafeString | None
    requester: SafeString | None
    claim: SafeString | None
    why: SafeString
    judged: SafeString
    messages: list[conversation.Message]
    earlier: list[conversation.Message]
    siblings: list[Sibling]
    timeline: list[history.Line]
    question: SafeString | None = None
    mode: str = ""
    warnings: list[str] = field(default_factory=list)
    repeat_url: str = ""

    @property
    def is_question(self) -> bool:
        """Whether the row asks a question."""
        return self.row.kind == InterruptKind.QUESTION


def read_page(desk: DeskAdmin, row: PendingInterrupt, now: datetime) -> CallPage:
    """Gather what the page of an interrupt shows."""
    call = arguments.read(row)
    # What may have run is what was approved, not what was proposed.
    in_doubt = row.status == InterruptStatus.IN_DOUBT
    shown = arguments.read_last(row) if in_doubt else call
    digest = row.decision_digest if in_doubt and row.decision else row.args_digest
    redactor = call.redactor()
    context = row.context if isinstance(row.context, Mapping) else {}
    policy = row.policy if isinstance(row.policy, Mapping) else {}
    question = row.kind == InterruptKind.QUESTION
    head = queue_rows.list_row(row, desk.link("change", row.pk), now)
    messages = conversation.messages(context.get("messages"), redactor)
    repeat = str(context.get("repeat_of") or "")
    agent = plain(row.agent, 60)
    return CallPage(
        row=row,
        call=call,
        now=now,
        title=_("Question from agent %s") % agent
        if question
        else plain(row.tool_name, 60),
        tool=show(row.tool_name, limit=80, one_line=True).html,
        summary=_summary(row.tool_description),
        head=head,
        table=None if question else arguments.table(shown),
        json=None if question else _json(shown),
        digest=_short(digest),
        full_digest=digest,
        asked=conversation.asked(context.get("asked"), redactor),
        requester=head.requester,
        claim=conversation.quoted(context.get("agent_reason"), redactor),
        why=show(str(policy.get("why") or ""), limit=400).html,
        judged=moment(row.requested_at, now),
        messages=messages[-LAST_MESSAGES:],
        earlier=messages[:-LAST_MESSAGES],
        siblings=_siblings(desk, row, now),
        timeline=history.timeline(row, selectors.events_of(row), now, redactor),
        question=values.render(row.payload, values.Tally()) if question else None,
        mode=mode_sentence(str(policy.get("mode", "")), policy),
        warnings=_warnings(row, call, policy, repeat),
        repeat_url=desk.link("change", repeat) if _is_id(repeat) else "",
    )


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
    return {
        "missing": missing if pending else None,
        "open": pending and missing is None and not over,
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
    deadline = step.hard_deadline if step else None
    policy = row.policy if isinstance(row.policy, Mapping) else {}
    hint = str(policy.get("check_hint") or "")
    return {
        "step": step,
        "key": step.idempotency_key if step else None,
        "sent": moment(step.started_at, now) if step else None,
        "sent_utc": utc(step.started_at) if step else "",
        "hint": show(hint, limit=400).html if hint else None,
        "deadline": deadline,
        "deadline_text": moment(deadline, now) if deadline else None,
        "early": deadline is not None and now < deadline,
        "turn_open": turn is not None
        and turn.status in ("suspended", "needs_attention"),
        "unknown": step is not None and step.status == StepStatus.UNKNOWN,
    }


def mode_sentence(mode: str, policy: Mapping[str, Any]) -> str:
    """Say what a broken connection during the call would mean."""
    words: dict[str, str] = {
        ToolMode.NONE: _("It only reads: if it breaks off, it is done again."),
        ToolMode.TRANSACTIONAL: _(
            "What it does and our record of it are saved together, so it cannot run "
            "twice."
        ),
        ToolMode.IDEMPOTENT: _(
            "If the connection breaks it is sent again with the same key, and the "
            "other side drops the repeat while it keeps the key."
        ),
        ToolMode.LOOKUP: _(
            "If the connection breaks we ask the other side whether it ran."
        ),
        ToolMode.UNSAFE: _(
            "This tool cannot be asked afterwards whether it ran. If the connection "
            "breaks during the call, it comes back to a person as in doubt."
        ),
    }
    return words.get(mode, "")


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


def _summary(description: str) -> SafeString:
    first = description.strip().split("\n\n", 1)[0].replace("\n", " ").rstrip(".")
    return show(first, limit=160, one_line=True).html


def _short(digest: str) -> str:
    plain_hex = digest.rpartition(":")[2]
    return " ".join(plain_hex[at : at + 4] for at in range(0, 12, 4))


def _json(call: CallArguments) -> SafeString:
    text = values.json_text(call.without_secrets(call.given))
    return format_html("{}", text)


def _siblings(desk: DeskAdmin, row: PendingInterrupt, now: datetime) -> list[Sibling]:
    others = selectors.siblings_of(row).select_related("turn").defer("context")[:50]
    made = []
    for one in others:
        name = one.tool_name or _("question")
        if one.status == InterruptStatus.PENDING:
            rest = left(one.expires_at, now)
            words = format_html("{}", _("waits, %s") % rest.words)
        elif one.status == InterruptStatus.IN_DOUBT:
            words = format_html("{}", _("in doubt: it may have run, or not"))
        else:
            said = history.decided_words(one.decision)
            words = format_html("{}; {}", said, history.since(one))
        made.append(
            Sibling(
                name=show(name, limit=60, one_line=True).html,
                url=desk.link("change", one.pk),
                words=words,
            )
        )
    return made


def _warnings(
    row: PendingInterrupt, call: CallArguments, policy: Mapping[str, Any], repeat: str
) -> list[str]:
    found = []
    if row.kind == InterruptKind.TOOL_CALL and not call.intact:
        found.append(
            _(
                "The stored arguments are not the ones that the agent asked for. "
                "Nothing may run from them: reject the call and look into how that "
                "happened."
            )
        )
    if row.generation > 1 and row.status == InterruptStatus.PENDING:
        found.append(
            _("Back again: an earlier approval was not used in time and lapsed.")
        )
    if repeat:
        found.append(_("The agent asked for the very same call before."))
    if policy.get("queue_unknown"):
        found.append(
            _("It was meant for the queue “%s”, which does not exist here.")
            % plain(str(policy["queue_unknown"]), 64)
        )
    return found


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def execute_by(row: PendingInterrupt) -> str:
    """Say until when an approval may be used."""
    return full(row.execute_by) if row.execute_by else ""


def digest_of(args: Mapping[str, Any]) -> str:
    """Return the short digest of arguments as they would be stored."""
    text = canonical.dumps(dict(args), max_bytes=None, max_depth=None)
    return _short(canonical.digest(text))

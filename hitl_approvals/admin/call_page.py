"""What the page of one interrupt shows, gathered in a fixed number of queries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals import canonical, selectors
from hitl_approvals.admin import (
    arguments,
    conversation,
    forking,
    history,
    queue_rows,
    rules,
    same_turn,
    values,
)
from hitl_approvals.admin.arguments import ArgumentTable, CallArguments
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.text import Shown, plain, show
from hitl_approvals.admin.times import moment
from hitl_approvals.enums import (
    InterruptKind,
    InterruptStatus,
    ToolMode,
    TurnStatus,
)
from hitl_approvals.models import PendingInterrupt

LAST_MESSAGES = 6
JSON_ROOM = 32_000
"""Characters of JSON that the page holds; the rest is in the file."""


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
    json: Shown | None
    digest: str
    full_digest: str
    asked: SafeString | None
    requester: SafeString | None
    claim: SafeString | None
    why: SafeString
    judged: SafeString
    messages: list[conversation.Message]
    earlier: list[conversation.Message]
    talk: conversation.Conversation
    siblings: list[same_turn.Sibling]
    steps: same_turn.Steps
    timeline: list[history.Line]
    question: SafeString | None = None
    question_in_part: bool = False
    context_in_part: bool = False
    mode: str = ""
    warnings: list[str] = field(default_factory=list)
    repeat_url: str = ""
    forked_from: dict[str, Any] | None = None

    @property
    def full_part(self) -> str:
        """The part that holds in full what the table shows."""
        in_doubt = self.row.status == InterruptStatus.IN_DOUBT
        edited = self.row.decision_args_text is not None
        return "decided" if in_doubt and edited else "arguments"

    @property
    def turn_waits(self) -> bool:
        """Whether the turn goes on by itself once all of its calls are decided."""
        turn = self.row.turn
        return turn is not None and turn.status == TurnStatus.SUSPENDED

    @property
    def is_question(self) -> bool:
        """Whether the row asks a question."""
        return self.row.kind == InterruptKind.QUESTION


def read_page(
    desk: DeskAdmin, row: PendingInterrupt, now: datetime, *, revealed: bool = False
) -> CallPage:
    """Gather what the page of an interrupt shows."""
    call = arguments.read(row)
    # What may have run is what was approved, not what was proposed.
    in_doubt = row.status == InterruptStatus.IN_DOUBT
    shown = arguments.read_last(row) if in_doubt else call
    # Everywhere else on the page they stay hidden.
    told = replace(shown, secret=frozenset()) if revealed else shown
    digest = row.decision_digest if in_doubt and row.decision else row.args_digest
    redactor = call.redactor()
    context = row.context if isinstance(row.context, Mapping) else {}
    policy = row.policy if isinstance(row.policy, Mapping) else {}
    question = row.kind == InterruptKind.QUESTION
    head = queue_rows.list_row(row, desk.link("change", row.pk), now)
    talk = conversation.read(context.get("messages"), redactor, row)
    repeat = _repeat_of(row)
    agent = plain(row.agent, 60)
    asks = values.Tally()
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
        table=None if question else arguments.table(told),
        json=None if question else _json(shown),
        digest=_short(digest),
        full_digest=digest,
        asked=conversation.asked(context.get("asked"), redactor),
        requester=head.requester,
        context_in_part=conversation.in_part(context, redactor),
        claim=conversation.quoted(context.get("agent_reason"), redactor),
        why=show(rules.reason(str(policy.get("why") or "")), limit=400).html,
        judged=moment(row.requested_at, now),
        messages=talk.messages[-LAST_MESSAGES:],
        earlier=talk.messages[:-LAST_MESSAGES],
        talk=talk,
        siblings=same_turn.siblings(desk, row, now),
        steps=same_turn.steps(row, now),
        timeline=history.timeline(row, selectors.events_of(row), now, redactor),
        question=values.render(row.payload, asks) if question else None,
        question_in_part=asks.in_part,
        mode=_mode(row, policy),
        warnings=warnings(row, call),
        repeat_url=desk.link("change", repeat) if _is_id(repeat) else "",
        forked_from=forking.origin_of(desk, row),
    )


def _mode(row: PendingInterrupt, policy: Mapping[str, Any]) -> str:
    if row.client_id is None or row.kind == InterruptKind.QUESTION:
        return mode_sentence(str(policy.get("mode", "")), policy)
    return _(
        "Another program runs it, once it has fetched the approval. If that program does "
        "not say what came of it, it comes back to a person as in doubt."
    )


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


def _summary(description: str) -> SafeString:
    first = description.strip().split("\n\n", 1)[0].replace("\n", " ").rstrip(".")
    return show(first, limit=160, one_line=True).html


def _short(digest: str) -> str:
    plain_hex = digest.rpartition(":")[2]
    return " ".join(plain_hex[at : at + 4] for at in range(0, 12, 4))


def _json(call: CallArguments) -> Shown:
    text = json.dumps(
        call.without_secrets(call.given), ensure_ascii=False, indent=values.INDENT
    )
    cut = values.escaped(text[:JSON_ROOM])
    return Shown(format_html("{}", cut), left_out=max(len(text) - JSON_ROOM, 0))


def warnings(row: PendingInterrupt, call: CallArguments) -> list[str]:
    """Return what a person should know before anything else of a call."""
    policy = row.policy if isinstance(row.policy, Mapping) else {}
    repeat = _repeat_of(row)
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
    came_from = forking.came_from(row)
    if came_from.get("fate_unknown") and row.status == InterruptStatus.PENDING:
        found.append(
            _(
                "In the turn that was forked this call began, and whether it happened "
                "is not known. Find out before you approve it."
            )
        )
    if repeat:
        found.append(_("The agent asked for the very same call before."))
    if policy.get("queue_unknown"):
        found.append(
            _("It was meant for the queue “%s”, which does not exist here.")
            % plain(str(policy["queue_unknown"]), 64)
        )
    return found


def _repeat_of(row: PendingInterrupt) -> str:
    context = row.context if isinstance(row.context, Mapping) else {}
    return str(context.get("repeat_of") or "")


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def digest_of(args: Mapping[str, Any]) -> str:
    """Return the short digest of arguments as they would be stored."""
    text = canonical.dumps(dict(args), max_bytes=None, max_depth=None)
    return _short(canonical.digest(text))

"""What happened to an interrupt, in sentences: its timeline, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals.admin import values
from hitl_approvals.admin.text import Redactor, show, val
from hitl_approvals.admin.times import clock, moment
from hitl_approvals.enums import (
    DecisionType,
    Door,
    EventType,
    InterruptKind,
    InterruptStatus,
    OutcomeStatus,
    TurnStatus,
)
from hitl_approvals.models import InterruptEvent, PendingInterrupt

Words = dict[str, str]
"""Sentences by the value of an enum."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a timeline."""

    text: SafeString
    time: SafeString
    now: bool = False


def door(via: str) -> str:
    """Say through which door something came; unknown ones by their own name."""
    known: dict[str, str] = {
        Door.ADMIN: _("in the admin"),
        Door.API: _("over the API"),
        Door.PYTHON: _("from code"),
        Door.SYSTEM: _("by itself"),
    }
    return known.get(via, via)


def decided_words(decision: str | None) -> str:
    """Return the outcome of a decision as a badge says it."""
    words: Words = {
        DecisionType.APPROVE: _("Approved"),
        DecisionType.EDIT: _("Approved with an edit"),
        DecisionType.REJECT: _("Rejected"),
        DecisionType.RESPOND: _("Answered"),
        DecisionType.EXPIRE: _("Expired"),
    }
    return words.get(decision or "", _("Withdrawn"))


def badge(row: PendingInterrupt) -> str:
    """Return the kind of badge for a row that is not pending."""
    if row.status == InterruptStatus.IN_DOUBT:
        return "doubt"
    good = (DecisionType.APPROVE, DecisionType.EDIT, DecisionType.RESPOND)
    if row.status == InterruptStatus.CANCELLED:
        return "quiet"
    return "ok" if row.decision in good else "no"


def outcome(row: PendingInterrupt) -> str:
    """Say what the ledger knows of a row that is over; never more than that."""
    if row.policy.get("taken_over"):
        return _("taken over from the turn that was forked")
    again = row.generation > 1
    words: Words = {
        OutcomeStatus.SUCCEEDED: _("ran") if again else _("ran once"),
        OutcomeStatus.FAILED: _("the tool failed and nothing was changed"),
        OutcomeStatus.REFUSED: _("agent told; it did not run"),
        OutcomeStatus.EXPIRED: _("agent told; it did not run"),
        OutcomeStatus.ANSWERED: _("the agent has the answer"),
        OutcomeStatus.NOT_RUN: _("it did not run"),
        OutcomeStatus.NOT_REQUESTED_AGAIN: _(
            "the agent did not ask for it again; it did not run"
        ),
        OutcomeStatus.WITHDRAWN: _("withdrawn; it did not run"),
        OutcomeStatus.LAPSED: _("the agent did not fetch it in time; it did not run"),
        OutcomeStatus.GIVEN_UP: _("given up; nobody knows whether it ran"),
    }
    return words.get(row.outcome_status, row.get_status_display())


def since(row: PendingInterrupt) -> str:
    """Say what has become of a decision so far, in one sentence."""
    if row.status == InterruptStatus.RESOLVED:
        return _("%s, resolved") % outcome(row)
    if row.status == InterruptStatus.CANCELLED:
        return outcome(row)
    if row.status == InterruptStatus.IN_DOUBT:
        return _("in doubt: it may have run, or not")
    if row.status == InterruptStatus.PENDING:
        return _("back again: the approval was not used in time")
    return _waiting(row)


def _waiting(row: PendingInterrupt) -> str:
    turn = row.turn
    if turn is None:
        if row.consumed_at is None:
            return _("the agent has not fetched it yet")
        return _("the agent has it and did not say yet what came of it")
    words: Words = {
        TurnStatus.SUSPENDED: _("the turn goes on when its other calls are decided"),
        TurnStatus.READY: _("the turn is about to go on"),
        TurnStatus.RUNNING: _("the turn runs"),
        TurnStatus.NEEDS_ATTENTION: _("the turn needs attention"),
    }
    return words.get(turn.status, _("recorded"))


def trail(row: PendingInterrupt, now: datetime) -> list[SafeString]:
    """Return the stations of a decision: when it was made, and where it is now."""
    made = [format_html("{} {}", _("decided"), moment(row.decided_at, now))]
    step = row.steps.order_by("-generation").first() if row.decision_digest else None
    if step is not None and step.started_at is not None:
        made.append(format_html("{} {}", _("started"), moment(step.started_at, now)))
    if row.status == InterruptStatus.RESOLVED:
        made.append(
            format_html("<b>{} {}</b>", since(row), moment(row.resolved_at, now))
        )
    else:
        made.append(format_html("<b>{}</b>", since(row)))
    return made


def timeline(
    row: PendingInterrupt,
    events: Iterable[InterruptEvent],
    now: datetime,
    redactor: Redactor,
) -> list[Line]:
    """Return an interrupt's audit trail as lines, the newest first."""
    lines = [
        Line(_sentence(row, event, redactor), moment(event.at, now)) for event in events
    ]
    waits: Words = {
        InterruptStatus.PENDING: _("Waits for a decision"),
        InterruptStatus.IN_DOUBT: _("Waits for somebody who finds out"),
        InterruptStatus.DECIDED: since(row).capitalize(),
    }
    open_ = waits.get(row.status)
    if open_:
        lines.append(
            Line(format_html("{}", open_), format_html("{}", _("now")), now=True)
        )
    return lines[::-1]


def turn_timeline(
    events: Iterable[InterruptEvent], now: datetime, redactor: Redactor
) -> list[Line]:
    """Return what happened to a turn as a whole, the newest first."""
    lines = []
    for event in events:
        detail = event.detail if isinstance(event.detail, dict) else {}
        who = show(event.actor or _("system"), limit=80, one_line=True).html
        said = redactor.clean(str(detail.get("reason") or detail.get("error") or ""))
        text = format_html("{}, {}", event.get_type_display().capitalize(), who)
        if said:
            quoted = val(said, limit=400, one_line=True)
            text = format_html("{}: <q>{}</q>", text, quoted)
        lines.append(Line(text, moment(event.at, now)))
    return lines[::-1]


def _sentence(
    row: PendingInterrupt, event: InterruptEvent, redactor: Redactor
) -> SafeString:
    detail = event.detail if isinstance(event.detail, dict) else {}
    actor = show(event.actor or _("system"), limit=80, one_line=True).html
    where = door(event.via)
    said = redactor.clean(str(detail.get("reason") or detail.get("note") or ""))
    named = {**_agent(row), **_hands(detail)}
    line = format_html(_template(event), who=actor, where=where, **named)
    if event.type in (EventType.RESOLVED, EventType.CANCELLED):
        line = format_html("{}: {}", line, _event_outcome(row, detail))
    if event.type == EventType.LATE_RESULT and "outcome" in detail:
        line = format_html("{}: {}", line, _reported(detail, redactor))
    if said:
        line = format_html("{}: <q>{}</q>", line, val(said, limit=400, one_line=True))
    return line


def _reported(detail: dict[str, Any], redactor: Redactor) -> SafeString:
    """Return what a remote agent said too late; whoever settles the doubt wants it."""
    labels = dict(OutcomeStatus.choices)
    word = labels.get(str(detail["outcome"]), _("it does not know"))
    if detail.get("result") is None:
        return format_html("{}", word)
    text = redactor.clean(values.json_text(detail["result"]))
    return format_html("{}, <q>{}</q>", word, val(text, limit=400, one_line=True))


def _agent(row: PendingInterrupt) -> dict[str, SafeString]:
    return {"agent": show(row.agent, limit=80, one_line=True).html}


def _hands(detail: dict[str, Any]) -> dict[str, SafeString]:
    """Return whom a row was given to, and until when."""
    try:
        until = parse_datetime(str(detail.get("until") or ""))
    except ValueError:  # somebody changed the event
        until = None
    to = show(str(detail.get("to") or ""), limit=80, one_line=True).html
    return {"to": to, "until": clock(until)}


def _event_outcome(row: PendingInterrupt, detail: dict[str, Any]) -> str:
    code = detail.get("outcome")
    if code == row.outcome_status:
        return outcome(row)
    labels = dict(OutcomeStatus.choices)
    return str(labels.get(str(code), _("not said")))


def _template(event: InterruptEvent) -> str:
    question = event.digest_proposed == ""
    if event.type == EventType.RAISED and (event.detail or {}).get("forked_from"):
        return _("Asked again in this fork, made by {who}, {where}")
    words: Words = {
        EventType.RAISED: _("Asked by agent {agent}")
        if question
        else _("Requested by agent {agent}"),
        EventType.COPIED: _(
            "Taken over by {who}, {where}, from the turn that was forked; nothing "
            "runs for it here"
        ),
        EventType.APPROVED: _("Approved by {who}, {where}"),
        EventType.EDITED: _("Approved with an edit by {who}, {where}"),
        EventType.REJECTED: _("Rejected by {who}, {where}"),
        EventType.RESPONDED: _("Answered by {who}, {where}"),
        EventType.EXPIRED: _("Nobody decided in time"),
        EventType.LAPSED: _(
            "The approval was not used in time and lapsed; back to a person"
        ),
        EventType.CONSUMED: _("Fetched by {who}"),
        EventType.GIVEN_BACK: _("Given back unused by {who}"),
        EventType.RESOLVED: _("Resolved"),
        EventType.CANCELLED: _("Withdrawn"),
        EventType.IN_DOUBT: _(
            "In doubt: no answer was recorded; it may have run, or not"
        ),
        EventType.SETTLED_HAPPENED: _("{who} found that it happened, {where}"),
        EventType.SETTLED_RUN_AGAIN: _("{who} asked to run it again, {where}"),
        EventType.SETTLED_GAVE_UP: _("{who} gave up on finding out, {where}"),
        EventType.LATE_RESULT: _("A result came in after this was closed"),
        EventType.CLAIMED: _("Claimed by {who} until {until}, {where}"),
        EventType.RELEASED: _("Released by {who}, {where}"),
        EventType.ASSIGNED: _("Given to {to} until {until} by {who}, {where}"),
        EventType.REVEALED: _("Hidden arguments revealed to {who}, {where}"),
    }
    return words.get(event.type, event.get_type_display())


def is_question(row: PendingInterrupt) -> bool:
    """Tell whether a row asks a question."""
    return row.kind == InterruptKind.QUESTION

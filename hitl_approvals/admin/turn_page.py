"""What the pages of turns show: where each stands, its journal, its interrupts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.db.models import QuerySet
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hitl_approvals import permissions, selectors
from hitl_approvals.admin import arguments, forking, history, turn_roads, values
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.text import Redactor, plain, show, val
from hitl_approvals.admin.times import moment, span
from hitl_approvals.enums import InterruptStatus, OutcomeStatus, StepStatus, TurnStatus
from hitl_approvals.models import AgentTurn, PendingInterrupt, TurnStep
from hitl_approvals.services.fork_points import RECORDED
from hitl_approvals.types import Person

MAX_STEPS = 200

_BADGES: dict[str, str] = {
    TurnStatus.COMPLETED: "ok",
    TurnStatus.NEEDS_ATTENTION: "urgent",
    TurnStatus.FAILED: "no",
    TurnStatus.SUSPENDED: "soon",
    StepStatus.SUCCEEDED: "ok",
    StepStatus.UNKNOWN: "doubt",
}


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One turn of a list."""

    url: str
    label: SafeString
    asked: SafeString | None
    thread: SafeString
    status: str
    badge: str
    fact: str
    started: SafeString
    age: str
    requester: SafeString | None


def light(turns: QuerySet[AgentTurn]) -> QuerySet[AgentTurn]:
    """Leave out the columns that no list shows."""
    return turns.defer("state", "output", "execute_options", "error", "last_error")


def list_rows(
    desk: DeskAdmin, turns: Sequence[AgentTurn], now: datetime
) -> list[TurnRow]:
    """Return turns as rows of a list."""
    return [_row(desk, one, now) for one in turns]


def detail(
    desk: DeskAdmin, turn: AgentTurn, user: Person, now: datetime
) -> dict[str, Any]:
    """Return what the page of a turn shows."""
    interrupts = list(
        permissions.visible_to(user)
        .filter(turn=turn.pk)
        .select_related("turn")
        .order_by("position", "pk")[:100]
    )
    secrets = Redactor(
        [text for row in interrupts for text in arguments.read(row).redactor().secrets]
    )
    steps = list(selectors.steps_of(turn.pk)[: MAX_STEPS + 1])
    events = selectors.events_of_turn(turn.pk).filter(subject_id=turn.pk)
    return {
        "title": _("Turn of agent %s") % plain(turn.agent, 60),
        "turn": turn,
        "row": _row(desk, turn, now),
        "version": show(turn.agent_version, limit=40, one_line=True).html,
        "asked": _quoted(turn.input, secrets),
        "output": _quoted(turn.output, secrets),
        "why": turn_roads.why(turn, secrets),
        "steps": [_step(one, secrets, now) for one in steps[:MAX_STEPS]],
        "more_steps": len(steps) > MAX_STEPS,
        "interrupts": [_interrupt(desk, one) for one in interrupts],
        "timeline": history.turn_timeline(events, now, secrets),
        "finished": moment(turn.finished_at, now) if turn.finished_at else None,
        "next_run": moment(turn.next_run_at, now)
        if turn.status == TurnStatus.READY
        else None,
        "key": uuid4(),
        **forking.relatives(desk, turn, user),
    }


def _row(desk: DeskAdmin, turn: AgentTurn, now: datetime) -> TurnRow:
    asked = turn.input if isinstance(turn.input, str) else None
    who = turn.requested_by_label
    return TurnRow(
        url=desk.link("change", turn.pk),
        label=show(turn.agent, limit=60, one_line=True).html,
        asked=val(asked[:140], one_line=True) if asked else None,
        thread=show(turn.thread_id, limit=60, one_line=True).html,
        status=turn.get_status_display(),
        badge=_BADGES.get(turn.status, "quiet"),
        fact=_fact(turn),
        started=moment(turn.created_at, now),
        age=span(now - turn.created_at),
        requester=show(who, limit=60, one_line=True).html if who else None,
    )


def _fact(turn: AgentTurn) -> str:
    if turn.status == TurnStatus.SUSPENDED:
        count = ngettext(
            "%d decision is missing", "%d decisions are missing", turn.undecided
        )
        return count % turn.undecided
    if turn.blocked:
        return _("waits for another turn of its thread")
    if turn.status == TurnStatus.READY and turn.attempts:
        return _("attempt %(number)d of %(most)d failed; it is tried again") % {
            "number": turn.attempts,
            "most": turn.max_attempts,
        }
    if turn.status == TurnStatus.READY:
        return _("a worker takes it as soon as one is free")
    return ""


def _quoted(value: Any, redactor: Redactor) -> SafeString | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else values.json_text(value)
    return val(redactor.clean(text), limit=2000)


def _step(step: TurnStep, redactor: Redactor, now: datetime) -> dict[str, Any]:
    result = None
    if step.result is not None:
        text = step.result
        if not isinstance(text, str):
            text = values.json_text(text, indent=None)
        result = val(redactor.clean(text), limit=300)
    return {
        "at": step.pk if step.status in RECORDED else "",
        "position": step.position,
        "kind": step.get_kind_display(),
        "name": show(step.name, limit=60, one_line=True).html,
        "status": step.get_status_display(),
        "badge": _BADGES.get(step.status, "quiet"),
        "result": result,
        "error": val(redactor.clean(step.error), limit=400) if step.error else None,
        "started": moment(step.started_at, now),
        "generation": step.generation,
    }


def _interrupt(desk: DeskAdmin, row: PendingInterrupt) -> dict[str, Any]:
    waits = row.status in (InterruptStatus.PENDING, InterruptStatus.IN_DOUBT)
    words = row.get_status_display() if waits else history.decided_words(row.decision)
    name = row.tool_name or _("question")
    return {
        "at": "" if row.outcome_status == OutcomeStatus.SUPERSEDED else row.pk,
        "url": desk.link("change", row.pk, model="pendinginterrupt"),
        "name": show(name, limit=60, one_line=True).html,
        "words": words,
        "badge": "soon"
        if row.status == InterruptStatus.PENDING
        else history.badge(row),
        "since": format_html("{}", "" if waits else history.since(row)),
    }

"""What else the turn of a call did and asks: its steps, and the other calls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals import selectors
from hitl_approvals.admin import history
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.text import show
from hitl_approvals.admin.times import left, moment
from hitl_approvals.enums import InterruptStatus, StepKind, StepStatus
from hitl_approvals.models import PendingInterrupt, TurnStep

MOST_CALLS = 50
MOST_STEPS = 20


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another call of the same turn."""

    name: SafeString
    url: str
    words: SafeString


@dataclass(frozen=True, slots=True)
class Steps:
    """What a turn recorded that nobody was asked about, the last ones in order."""

    rows: list[Sibling]
    more: int


def siblings(desk: DeskAdmin, row: PendingInterrupt, now: datetime) -> list[Sibling]:
    """Return the other interrupts of a turn, in the model's order."""
    others = selectors.siblings_of(row).select_related("turn").defer("context")
    made = []
    for one in others[:MOST_CALLS]:
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


def steps(row: PendingInterrupt, now: datetime) -> Steps:
    """Return what ran in the turn without approval; gated calls have rows of their own."""
    if row.turn_id is None:
        return Steps([], 0)
    found = selectors.steps_of(row.turn_id).filter(interrupt=None)
    brief = found.only("kind", "name", "status", "started_at", "finished_at")
    last = list(brief.reverse()[: MOST_STEPS + 1])
    more = found.count() - MOST_STEPS if len(last) > MOST_STEPS else 0
    made = [
        Sibling(show(one.name, limit=60, one_line=True).html, "", _step_words(one, now))
        for one in last[:MOST_STEPS]
    ]
    return Steps(made[::-1], more)


def _step_words(step: TurnStep, now: datetime) -> SafeString:
    when = moment(step.finished_at or step.started_at, now)
    if step.kind == StepKind.TOOL and step.status == StepStatus.SUCCEEDED:
        return format_html(_("ran at {} without approval"), when)
    if step.kind == StepKind.MODEL and step.status == StepStatus.SUCCEEDED:
        return format_html(_("model reply, recorded at {}"), when)
    kind, status = step.get_kind_display(), step.get_status_display()
    return format_html("{}, {}, {}", kind, status, when)

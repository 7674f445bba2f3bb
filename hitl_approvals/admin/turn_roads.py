"""A turn that stopped: what the ledger knows of it, and the three roads on from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals import permissions, selectors
from hitl_approvals.admin import history, parsing
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.text import Redactor, plain, show, val
from hitl_approvals.admin.times import moment
from hitl_approvals.enums import (
    InterruptStatus,
    StepKind,
    StepStatus,
    ToolMode,
    TurnStatus,
)
from hitl_approvals.models import AgentTurn, PendingInterrupt, TurnStep
from hitl_approvals.types import Person

STOPPED = (TurnStatus.NEEDS_ATTENTION, TurnStatus.FAILED)
MOST = 20
"""Entries of one kind that the page names; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Known:
    """One call or decision that the ledger knows of."""

    name: SafeString
    url: str
    words: str
    time: SafeString | None = None
    review_url: str = ""
    """Where its decision is taken back; empty where that is not possible."""


@dataclass(slots=True)
class Ledger:
    """What is known of a stopped turn."""

    ran: list[Known] = field(default_factory=list)
    under_way: list[Known] = field(default_factory=list)
    unknown: list[Known] = field(default_factory=list)
    doubts: list[Known] = field(default_factory=list)
    kept: list[Known] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    seen: str = ""
    """Stands for all of this, so that a form can say what it was made from."""

    @property
    def lists(self) -> list[tuple[str, str, list[Known], int]]:
        """Each kind with its heading, what it means, and how many are not named."""
        kinds = (
            ("ran", _("Ran, and its result is on record"), "", self.ran),
            (
                "under_way",
                _("May be under way"),
                _("Once its time is over it comes back as in doubt."),
                self.under_way,
            ),
            ("unknown", _("Nobody could find out whether it ran"), "", self.unknown),
            (
                "doubts",
                _("In doubt: it may have run, or not"),
                _("A person has to find out."),
                self.doubts,
            ),
            ("kept", _("Decided and not used yet"), "", self.kept),
        )
        return [
            (title, hint, known, self.counts[name] - len(known))
            for name, title, hint, known in kinds
            if self.counts[name]
        ]


@dataclass(slots=True)
class Typed:
    """What a person typed on one of the roads."""

    verb: str = ""
    reason: str = ""
    input: str = ""
    as_json: bool = False
    looked: bool = False
    errors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, request: HttpRequest, verb: str) -> Typed:
        """Read a posted form; never fails."""
        data = request.POST
        return cls(
            verb=verb,
            reason=parsing.lines(data.get("reason", "")),
            input=parsing.lines(data.get("input", "")),
            as_json=data.get("as") == "json",
            looked=bool(data.get("looked")),
        )

    @property
    def lost(self) -> SafeString | None:
        """What would be lost if the page had no place for it any more."""
        text = self.reason if self.verb == "cancel" else self.input
        return val(text) if text.strip() else None


def read(
    desk: DeskAdmin, turn: AgentTurn, user: Person, now: datetime
) -> Ledger | None:
    """Return what is known of a turn that stopped; None if it did not stop."""
    if turn.status not in STOPPED:
        return None
    # Pure reads change nothing, so it does not matter whether they ran.
    steps = list(
        selectors.steps_of(turn.pk)
        .filter(kind=StepKind.TOOL)
        .exclude(mode=ToolMode.NONE)
        .defer("args_text", "result", "error")
    )
    open_ = (InterruptStatus.IN_DOUBT, InterruptStatus.DECIDED)
    rows = list(
        PendingInterrupt.objects.filter(turn=turn.pk, status__in=open_)
        .order_by("position", "pk")
        .only("tool_name", "status", "decision", "decided_by_label", "decided_at")
    )
    seen = permissions.visible_to(user).filter(turn=turn.pk)
    visible = set(seen.values_list("pk", flat=True))
    by_status: dict[str, list[TurnStep]] = {}
    for one in steps:
        by_status.setdefault(one.status, []).append(one)
    begun = {one.interrupt_id for one in steps if one.status != StepStatus.NOT_STARTED}
    doubts = [one for one in rows if one.status == InterruptStatus.IN_DOUBT]
    kept = [one for one in rows if one.status == InterruptStatus.DECIDED]
    ran = by_status.get(StepStatus.SUCCEEDED, [])
    under_way = by_status.get(StepStatus.STARTED, [])
    open_doubts = {one.pk for one in doubts}
    unknown = [
        one
        for one in by_status.get(StepStatus.UNKNOWN, [])
        if one.interrupt_id not in open_doubts
    ]
    found = Ledger(
        ran=_steps(desk, ran, visible, now),
        under_way=_steps(desk, under_way, visible, now),
        unknown=_steps(desk, unknown, visible, now),
        doubts=[_doubt(desk, one) for one in doubts if one.pk in visible][:MOST],
        kept=[_kept(desk, turn, one, begun, now) for one in kept if one.pk in visible][
            :MOST
        ],
        counts={
            "ran": len(ran),
            "under_way": len(under_way),
            "unknown": len(unknown),
            "doubts": len(doubts),
            "kept": len(kept),
        },
    )
    figures = (turn.events_count, *found.counts.values())
    found.seen = ".".join(map(str, figures))
    return found


def check(ledger: Ledger | None, request: HttpRequest, typed: Typed) -> bool:
    """Note what is missing before a stopped turn goes on; False if something is.

    What was looked at has to be what is there: a doubt may have come in meanwhile.
    """
    if ledger is None:
        return True
    if request.POST.get("seen", "") != ledger.seen:
        typed.errors[""] = _(
            "This turn changed after you opened the page. Look at it again."
        )
    if typed.verb == "restart" and must_look(ledger) and not typed.looked:
        typed.errors["looked"] = _("Look at what ran first, then tick this.")
    return not typed.errors


def must_look(ledger: Ledger) -> bool:
    """Tell whether something may have happened that a restart could do again."""
    return any(ledger.counts[name] for name in ("ran", "unknown", "doubts"))


def why(turn: AgentTurn, redactor: Redactor) -> SafeString | None:
    """Return why a turn stopped, as the agent, a tool or a worker told it."""
    text = turn.error or turn.last_error
    return val(redactor.clean(text)) if text else None


def _steps(
    desk: DeskAdmin, steps: Sequence[TurnStep], visible: set[UUID], now: datetime
) -> list[Known]:
    made = []
    for one in steps[:MOST]:
        url = ""
        if one.interrupt_id in visible:
            url = desk.link("change", one.interrupt_id, model="pendinginterrupt")
        under_way = one.status == StepStatus.STARTED
        made.append(
            Known(
                name=show(one.name, limit=60, one_line=True).html,
                url=url,
                words=_("until") if under_way else "",
                time=moment(one.hard_deadline if under_way else one.started_at, now),
            )
        )
    return made


def _doubt(desk: DeskAdmin, row: PendingInterrupt) -> Known:
    return Known(
        name=show(row.tool_name or _("question"), limit=60, one_line=True).html,
        url=desk.link("change", row.pk, model="pendinginterrupt"),
        words=_("settle it"),
    )


def _kept(
    desk: DeskAdmin,
    turn: AgentTurn,
    row: PendingInterrupt,
    begun: set[UUID | None],
    now: datetime,
) -> Known:
    reviewable = turn.status == TurnStatus.NEEDS_ATTENTION and row.pk not in begun
    words = _("%(what)s by %(who)s") % {
        "what": history.decided_words(row.decision),
        "who": plain(row.decided_by_label) or _("system"),
    }
    return Known(
        name=show(row.tool_name or _("question"), limit=60, one_line=True).html,
        url=desk.link("change", row.pk, model="pendinginterrupt"),
        words=words,
        time=moment(row.decided_at, now),
        review_url=str(row.pk) if reviewable else "",
    )

"""Interrupts as rows of the desk's list: what would run, for whom, and for how long yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hitl_approvals.admin import arguments, hands, history, values
from hitl_approvals.admin.text import plain, show
from hitl_approvals.admin.times import Left, left, moment, span
from hitl_approvals.enums import InterruptKind, InterruptStatus
from hitl_approvals.models import AgentTurn, PendingInterrupt

ROOM = 120
"""Characters of arguments that fit on about two lines."""


@dataclass(slots=True)
class ListRow:
    """One interrupt as the list shows it."""

    id: UUID
    url: str
    label: SafeString
    is_question: bool
    pairs: SafeString
    more: str
    sub: SafeString | None
    queue: SafeString
    tags: list[SafeString]
    age: str
    agent: SafeString
    requester: SafeString | None
    left: Left | None = None
    after: str = ""
    """What happens when the time is up."""
    badge: str = ""
    badge_words: str = ""
    when: SafeString | None = None
    in_doubt: bool = False
    hands: hands.Hands | None = None
    """Who holds it; None is nobody."""
    claim_url: str = ""
    """Where the reader may take it in hand from the list."""
    name: str = ""
    """What to call it where no markup is, if it can be ticked to be decided."""
    site_fact: str = ""
    """What the site's own subclass says of it."""


@dataclass(slots=True)
class Group:
    """Rows of one turn that wait together, or one row by itself."""

    rows: list[ListRow] = field(default_factory=list)
    head: SafeString | None = None
    turn: UUID | None = None


def groups(
    interrupts: Sequence[PendingInterrupt],
    urls: dict[UUID, str],
    now: datetime,
    facts: Mapping[UUID, str] | None = None,
    claims: Mapping[UUID, str] | None = None,
) -> list[Group]:
    """Return rows in order, those of one turn together at the place of the first."""
    sizes = Counter(one.turn_id for one in interrupts if _waits(one))
    shared = {key for key, size in sizes.items() if key is not None and size > 1}
    asked: dict[UUID | None, Any] = {}
    if shared:
        turns = AgentTurn.objects.filter(pk__in=shared)
        asked.update(turns.values_list("pk", "input"))
    made: dict[Any, Group] = {}
    for one in interrupts:
        together = one.turn_id in shared and _waits(one)
        key: Any = ("turn", one.turn_id) if together else one.pk
        group = made.setdefault(key, Group())
        row = list_row(one, urls[one.pk], now)
        row.site_fact = (facts or {}).get(one.pk, "")
        row.claim_url = (claims or {}).get(one.pk, "")
        group.rows.append(row)
        if together and group.head is None:
            group.head = _head(one, sizes[one.turn_id], asked.get(one.turn_id))
            group.turn = one.turn_id
    return list(made.values())


def list_row(row: PendingInterrupt, url: str, now: datetime) -> ListRow:
    """Return one interrupt as the list shows it."""
    question = row.kind == InterruptKind.QUESTION
    tally = values.Tally()
    pairs, more = _question(row) if question else _pairs(row, tally)
    requester = row.turn.requested_by_label if row.turn else ""
    made = ListRow(
        id=row.pk,
        url=url,
        label=format_html("{}", _("Question"))
        if question
        else show(row.tool_name, limit=80, one_line=True).html,
        is_question=question,
        pairs=pairs,
        more=more,
        sub=_sub(row, tally, now),
        queue=show(str(row.queue_id), limit=40, one_line=True).html,
        tags=tags(row),
        age=span(now - row.requested_at),
        agent=show(row.agent, limit=60, one_line=True).html,
        requester=show(requester, limit=60, one_line=True).html if requester else None,
    )
    made.hands = hands.of(row, now)
    if row.status == InterruptStatus.PENDING:
        made.left = left(row.expires_at, now)
        made.after = _("then rejected") if row.expires_at else ""
        if row.expires_at is None or row.expires_at > now:
            made.name = plain(row.tool_name or _("question"), 60)
    elif row.status == InterruptStatus.IN_DOUBT:
        made.in_doubt = True
        made.badge, made.badge_words = "doubt", _("In doubt")
    else:
        made.badge = history.badge(row)
        made.badge_words = history.decided_words(row.decision)
        made.when = moment(row.decided_at, now)
    return made


def tags(row: PendingInterrupt) -> list[SafeString]:
    """Return a row's tags as HTML."""
    found = row.tags if isinstance(row.tags, list) else []
    return [show(str(one), limit=40, one_line=True).html for one in found[:8]]


def _waits(row: PendingInterrupt) -> bool:
    return row.status == InterruptStatus.PENDING


def _question(row: PendingInterrupt) -> tuple[SafeString, str]:
    payload = row.payload
    text = (
        payload if isinstance(payload, str) else values.json_text(payload, indent=None)
    )
    shown = show(text, limit=ROOM, one_line=True)
    more = ""
    if shown.left_out:
        more = _("…%s more characters") % number_format(
            shown.left_out, force_grouping=True
        )
    return format_html('<bdi class="desk-val">{}</bdi>', shown.html), more


def _pairs(row: PendingInterrupt, tally: values.Tally) -> tuple[SafeString, str]:
    """Return name and value pairs in schema order, while they fit."""
    call = arguments.read_last(row)
    room, parts = ROOM, []
    names = [name for name in call.order if name in call.given]
    for name in names:
        if room <= 0:
            break
        if name in call.secret:
            html, size = (
                format_html('<span class="desk-quiet">{}</span>', _("hidden")),
                6,
            )
        else:
            html, size = values.brief(call.given[name], max(min(room, 90), 40))
            _count_hidden(call.given[name], tally)
        css = "desk-pair-long" if size > 50 else ""
        parts.append((css, show(name, limit=60, one_line=True).html, html))
        room -= size + len(name) + 3
    pairs = format_html_join(
        " ",
        '<span class="desk-pair {}"><span class="desk-k">{}</span> {}</span>',
        parts,
    )
    rest = len(names) - len(parts)
    return pairs, (_("and %d more") % rest if rest else "")


def _count_hidden(value: Any, tally: values.Tally) -> None:
    if isinstance(value, str):
        shown = show(value)
        tally.hidden += shown.hidden
        tally.turning += shown.turning


def _sub(
    row: PendingInterrupt, tally: values.Tally, now: datetime
) -> SafeString | None:
    """Return the facts that change the decision, if there are any."""
    facts: list[SafeString] = []
    if row.status == InterruptStatus.IN_DOUBT:
        facts.append(_doubt(row, now))
    elif row.status == InterruptStatus.PENDING:
        if row.generation > 1:
            facts.append(
                format_html(
                    "<b>{}</b> {}",
                    _("Back again:"),
                    _("an earlier approval was not used in time."),
                )
            )
        if row.kind == InterruptKind.QUESTION:
            facts.append(format_html("{}", _("needs an answer, not a yes")))
    else:
        who = plain(row.decided_by_label) if row.decided_by_label else _("nobody")
        facts.append(format_html("{}; {}", _("by %s") % who, history.since(row)))
    if tally.hidden:
        holds = ngettext(
            "%d invisible character", "%d invisible characters", tally.hidden
        )
        facts.append(format_html("{}", holds % tally.hidden))
    return format_html_join(" · ", "{}", ((one,) for one in facts)) if facts else None


def _doubt(row: PendingInterrupt, now: datetime) -> SafeString:
    fate = _("It may have run, or not. Only a person can find out.")
    if row.decision is None:
        return format_html("{} {}", _("Needed no approval."), fate)
    start = _("Approved by %s") % plain(row.decided_by_label or _("system"))
    return format_html("{}, {}. {}", start, moment(row.decided_at, now), fate)


def _head(row: PendingInterrupt, size: int, asked: Any) -> SafeString:
    calls = ngettext("%d call waits", "%d calls wait", size) % size
    agent = show(row.agent, limit=60, one_line=True).html
    line = format_html(_("One turn, {} · {} agent"), calls, agent)
    if row.turn and row.turn.requested_by_label:
        who = show(row.turn.requested_by_label, limit=60, one_line=True).html
        line = format_html(_("{}, for {}"), line, who)
    if isinstance(asked, str) and asked:
        shown = show(asked, limit=100, one_line=True)
        dots = "…" if shown.left_out else ""
        line = format_html("{}: <q><bdi>{}{}</bdi></q>", line, shown.html, dots)
    return line


def url_map(interrupts: Iterable[PendingInterrupt], link: Any) -> dict[UUID, str]:
    """Return the address of each row's page."""
    return {one.pk: link("change", one.pk) for one in interrupts}

"""What the pages of agent clients show: who they are, and what of theirs is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals.admin import client_forms, history, paging
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.text import plain, show
from hitl_approvals.admin.times import full, moment
from hitl_approvals.enums import InterruptStatus
from hitl_approvals.figures.counting import glance
from hitl_approvals.models import AgentClient, PendingInterrupt
from hitl_approvals.selectors import OPEN

LAST = 10
"""Requests that the page of a client lists."""


@dataclass(frozen=True, slots=True)
class ClientRow:
    """One client of the list."""

    url: str
    name: SafeString
    token: SafeString | None
    queue: SafeString
    badge: str
    state: str
    fact: SafeString | None
    open: str
    full: bool
    """Whether one more request would be refused."""
    last: SafeString | None


def list_rows(
    desk: DeskAdmin, clients: Sequence[AgentClient], now: datetime
) -> list[ClientRow]:
    """Return clients as rows of a list, in one query for all of them."""
    if not clients:
        return []
    rows = {one.pk: PendingInterrupt.objects.filter(client=one.pk) for one in clients}
    seen = glance(
        {str(pk): mine.filter(status__in=OPEN) for pk, mine in rows.items()},
        {str(pk): (mine, "-requested_at") for pk, mine in rows.items()},
        cap=paging.CAP,
    )
    return [
        _row(desk, one, now, seen.counts[str(one.pk)], seen.firsts[str(one.pk)])
        for one in clients
    ]


def detail(desk: DeskAdmin, client: AgentClient, now: datetime) -> dict[str, Any]:
    """Return what the page of a client shows."""
    mine = PendingInterrupt.objects.filter(client=client.pk)
    last = mine.select_related("turn").defer("context", "args_schema", "args_text")
    found = list(last.order_by("-requested_at", "-pk")[:LAST])
    others = client_forms.own_limits(client).get("queues", [])
    badge, state, fact = standing(client, now)
    return {
        "title": _("Agent client %s") % plain(client.name, 60),
        "client": client,
        "name": show(client.name, limit=100, one_line=True).html,
        "token": hint(client),
        "badge": badge,
        "state": state,
        "fact": fact,
        "queue": _queue(str(client.queue_id)),
        "queue_url": desk.link("change", client.queue_id, model="reviewqueue"),
        "other_queues": [_queue(one) for one in others],
        "limits": _limits(client),
        "made": moment(client.created_at, now),
        "revoked": moment(client.revoked_at, now) if client.revoked_at else None,
        "counts": counts(client),
        "last": [_request(desk, one, now) for one in found],
    }


def counts(client: AgentClient) -> list[tuple[str, str]]:
    """Return how much of a client's is under way: words, and a bounded number."""
    mine = PendingInterrupt.objects.filter(client=client.pk)
    decided = mine.filter(status=InterruptStatus.DECIDED)
    piles = {
        _("wait for a decision"): mine.filter(status=InterruptStatus.PENDING),
        _("decided, not fetched yet"): decided.filter(consumed_at__isnull=True),
        _("fetched, no outcome yet"): decided.filter(consumed_at__isnull=False),
        _("in doubt"): mine.filter(status=InterruptStatus.IN_DOUBT),
    }
    seen = glance(piles, cap=paging.CAP).counts
    return [(words, paging.counted(seen[words])) for words in piles]


def standing(client: AgentClient, now: datetime) -> tuple[str, str, SafeString | None]:
    """Return badge, word and a fact: whether a token of this client is good."""
    if client.revoked_at is not None:
        since = moment(client.revoked_at, now)
        return "quiet", _("revoked"), format_html(_("since {}"), since)
    if not client.token_hint:
        return "quiet", _("no token"), None
    if client.previous_until is not None and client.previous_until > now:
        until = moment(client.previous_until, now)
        return "soon", _("active"), format_html(_("old token good until {}"), until)
    return "ok", _("active"), None


def hint(client: AgentClient) -> SafeString | None:
    """Return how the token begins; None while there is none."""
    if not client.token_hint:
        return None
    return show(f"{client.token_hint}…", limit=20, one_line=True).html


def until_words(until: datetime | None, now: datetime) -> str:
    """Say for how long the old token is good, beside a new one."""
    if until is None or until <= now:
        return _("The old token is not good any more.")
    return _("The old token is good until %s.") % full(until)


def _row(
    desk: DeskAdmin,
    client: AgentClient,
    now: datetime,
    count: int,
    last: datetime | None,
) -> ClientRow:
    badge, state, fact = standing(client, now)
    most, _own = client_forms.limit(client, "open")
    number = paging.counted(count)
    return ClientRow(
        url=desk.link("change", client.pk),
        name=show(client.name, limit=80, one_line=True).html,
        token=hint(client),
        queue=_queue(str(client.queue_id)),
        badge=badge,
        state=state,
        fact=fact,
        open=_("%(count)s of at most %(most)s")
        % {"count": number, "most": client_forms.number(most)}
        if most is not None
        else number,
        full=most is not None and count >= min(most, paging.CAP + 1),
        last=moment(last, now) if last else None,
    )


def _limits(client: AgentClient) -> list[tuple[str, str]]:
    words = {
        "open": _("Most open requests"),
        "per_minute": _("Most writes a minute"),
        "waiting": _("Most calls that wait"),
    }
    made = []
    for name, label in words.items():
        value, own = client_forms.limit(client, name)
        said = client_forms.number(value)
        made.append((label, said if own else _("%s, as the site has it") % said))
    return made


def _queue(slug: str) -> SafeString:
    return show(slug, limit=64, one_line=True).html


def _request(desk: DeskAdmin, row: PendingInterrupt, now: datetime) -> dict[str, Any]:
    waits = row.status in OPEN
    words = row.get_status_display() if waits else history.decided_words(row.decision)
    return {
        "url": desk.link("change", row.pk, model="pendinginterrupt"),
        "name": show(row.tool_name or _("question"), limit=60, one_line=True).html,
        "badge": "soon"
        if row.status == InterruptStatus.PENDING
        else history.badge(row),
        "words": words,
        "since": format_html("{}", "" if waits else history.since(row)),
        "asked": moment(row.requested_at, now),
    }

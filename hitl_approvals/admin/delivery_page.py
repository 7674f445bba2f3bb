"""What the pages of deliveries show: where each stands, and what is sent to the letter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from http.client import responses
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hitl_approvals import canonical, permissions
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.text import plain, show, val
from hitl_approvals.admin.times import moment, span
from hitl_approvals.enums import DeliveryStatus
from hitl_approvals.figures.status import late_after
from hitl_approvals.models import (
    AgentTurn,
    Delivery,
    DeliveryChannel,
    PendingInterrupt,
)
from hitl_approvals.types import Person
from hitl_approvals.webhooks.endpoints import CHANNEL, Endpoint, endpoint_of
from hitl_approvals.webhooks.sender import USER_AGENT

MOST_INSIDE = 500
"""Interrupts of one turn whose deliveries are looked for."""
BODY_ROOM = 32_000
"""Characters of a body that the page holds; the rest is in the file."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a delivery stands, for a badge and a line below it."""

    badge: str
    words: str
    fact: SafeString | None = None


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One delivery of the list."""

    id: UUID
    url: str
    event: SafeString
    about: SafeString
    about_url: str
    endpoint: SafeString
    made: SafeString
    standing: Standing
    attempts: int
    name: str
    """What to call it where no markup is."""


def list_rows(
    desk: DeskAdmin, deliveries: Sequence[Delivery], now: datetime
) -> list[DeliveryRow]:
    """Return deliveries as rows of a list, in three queries for all of them."""
    known = _subjects({one.subject_id for one in deliveries})
    resting = _resting({one.channel for one in deliveries}, now)
    return [
        DeliveryRow(
            id=one.pk,
            url=desk.link("change", one.pk),
            event=show(one.event_type, limit=64, one_line=True).html,
            about=_about(one, known),
            about_url=_about_url(desk, one, known),
            endpoint=show(endpoint_name(one.channel), limit=64, one_line=True).html,
            made=moment(one.created_at, now),
            standing=standing(one, now, resting.get(one.channel)),
            attempts=one.attempts,
            name=plain(f"{one.event_type}, {endpoint_name(one.channel)}", 100),
        )
        for one in deliveries
    ]


def detail(desk: DeskAdmin, row: Delivery, now: datetime) -> dict[str, Any]:
    """Return what the page of a delivery shows."""
    endpoint = endpoint_of(row.channel)
    name = endpoint_name(row.channel)
    known = _subjects({row.subject_id})
    channel = DeliveryChannel.objects.filter(pk=row.channel).first()
    rests_until = channel.rests_until if channel else None
    alone_until = rests_until if rests_until and rests_until > now else None
    return {
        "title": _("%(event)s to %(endpoint)s")
        % {"event": plain(row.event_type, 64), "endpoint": plain(name, 64)},
        "row": row,
        "event": show(row.event_type, limit=64, one_line=True).html,
        "endpoint": show(name, limit=64, one_line=True).html,
        "standing": standing(row, now, alone_until),
        "about": _about(row, known),
        "about_url": _about_url(desk, row, known),
        "facts": _facts(row, now),
        "wrong": val(row.last_error) if row.last_error else None,
        "warnings": _warnings(row, endpoint, channel, alone_until),
        "host": _host(endpoint),
        "headers": _headers(row, endpoint),
        "body": show(body_text(row), limit=BODY_ROOM),
        "event_url": desk.link("change", row.event_id, model="interruptevent")
        if row.event_id
        else "",
        "made": moment(row.created_at, now),
        "others_query": f"view=all&q={row.subject_id}",
    }


def url_about(desk: DeskAdmin, user: Person, row: PendingInterrupt | AgentTurn) -> str:
    """Return where the deliveries about a row are listed.

    Empty if there are none, or none that this person may see; then nothing is asked.
    """
    place = desk.link("changelist", model="delivery")
    if not place or not permissions.may_administer(user):
        return ""
    about = [row.pk]
    if isinstance(row, AgentTurn):
        about += inside(row.pk)
    if not Delivery.objects.filter(subject_id__in=about).exists():
        return ""
    return f"{place}?view=all&q={row.pk}"


def inside(turn_id: UUID) -> list[UUID]:
    """Return the keys of a turn's interrupts, which deliveries can be about.

    Keys and no subquery: beside another condition, that would lead along all rows.
    """
    found = PendingInterrupt.objects.filter(turn=turn_id).order_by("position", "pk")
    return list(found.values_list("pk", flat=True)[:MOST_INSIDE])


def standing(row: Delivery, now: datetime, alone_until: datetime | None) -> Standing:
    """Say where a delivery stands, and why.

    Args:
        row: The delivery.
        now: The time that the page shows.
        alone_until: Until when its endpoint is left alone, if it is.
    """
    answer, due = answered(row), row.next_attempt_at
    if row.status == DeliveryStatus.DELIVERED:
        return Standing("ok", _("delivered"), moment(row.delivered_at, now))
    if row.status == DeliveryStatus.GIVEN_UP:
        return Standing("no", _("given up"), _plain(answer))
    if row.lease_token and due is not None and due > now:
        return Standing("claim", _("being sent"), _plain(answer))
    if alone_until is not None:
        words = _("its endpoint is left alone until {}")
        return Standing(
            "soon", _("waits"), format_html(words, moment(alone_until, now))
        )
    if due is not None and now - due > late_after():
        fact = format_html(_("due for {}"), span(now - due))
        return Standing("urgent", _("overdue"), fact)
    when = format_html(_("next at {}"), moment(due, now)) if due else None
    if not row.attempts:
        return Standing("quiet", _("owed"), when)
    if when is not None and answer:
        when = format_html("{}; {}", answer, when)
    return Standing("soon", _("failed so far"), when or _plain(answer))


def answered(row: Delivery) -> str:
    """Say what came of the last attempt, in a few words; empty before any."""
    if row.last_status is not None:
        return _("answer %s") % _code(row.last_status)
    return _("no answer") if row.attempts else ""


def body_text(row: Delivery) -> str:
    """Return the body as it is sent: the canonical text, which is also what is signed."""
    return canonical.dumps(row.body, max_bytes=None, max_depth=None)


def endpoint_name(channel: str) -> str:
    """Return what the site calls where a channel leads."""
    return channel.removeprefix(CHANNEL)


def _facts(row: Delivery, now: datetime) -> list[tuple[str, Any]]:
    facts: list[tuple[str, Any]] = [(_("Attempts"), row.attempts)]
    if row.last_status is not None:
        facts.append((_("Last answer"), _code(row.last_status)))
    elif row.attempts:
        facts.append((_("Last answer"), _("none")))
    if row.status == DeliveryStatus.OWED:
        facts.append((_("Next attempt"), moment(row.next_attempt_at, now)))
        if row.give_up_at:
            facts.append((_("Given up after"), moment(row.give_up_at, now)))
    if row.delivered_at:
        facts.append((_("Delivered"), moment(row.delivered_at, now)))
    return facts


def _warnings(
    row: Delivery,
    endpoint: Endpoint | None,
    channel: DeliveryChannel | None,
    alone_until: datetime | None,
) -> list[SafeString]:
    """Return what keeps this from being sent, beside its own last answer."""
    if row.status != DeliveryStatus.OWED:
        return []
    if endpoint is None:
        words = _(
            "The settings of this process know no endpoint of this name. Nothing is "
            "sent until they do, and what is a day old is given up."
        )
        return [format_html("{}", words)]
    if channel is None or alone_until is None:
        return []
    text = ngettext(
        "The endpoint failed {} time in a row and is left alone until {}.",
        "The endpoint failed {} times in a row and is left alone until {}.",
        channel.failures,
    )
    return [format_html(text, channel.failures, moment(alone_until))]


def _headers(row: Delivery, endpoint: Endpoint | None) -> list[tuple[str, Any]]:
    """Return the headers that go along; of what is secret only that it is there."""
    secrets = len(endpoint.secrets) if endpoint else 0
    signed = ngettext(
        "%d signature, made with each attempt",
        "%d signatures, one a secret, made with each attempt",
        secrets,
    )
    return [
        ("Content-Type", "application/json"),
        ("User-Agent", USER_AGENT),
        ("webhook-id", str(row.pk)),
        ("webhook-timestamp", _("the time of the attempt")),
        (
            "webhook-signature",
            signed % secrets if secrets else _("none"),
        ),
    ]


def _host(endpoint: Endpoint | None) -> str:
    """Return where an endpoint is; the path stays out, which can hold a secret."""
    if endpoint is None:
        return ""
    try:
        parts = urlsplit(endpoint.url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    host = parts.hostname or ""
    return plain(f"{parts.scheme}://{host}{port}/…", 200) if host else ""


def _resting(channels: set[str], now: datetime) -> dict[str, datetime | None]:
    """Return until when each of these is left alone, for those that are."""
    found = DeliveryChannel.objects.filter(pk__in=channels, rests_until__gt=now)
    return dict(found.values_list("pk", "rests_until"))


def _subjects(ids: set[UUID]) -> dict[UUID, tuple[str, str]]:
    """Return the model and the name of each interrupt and turn that is still there."""
    found = {
        pk: ("pendinginterrupt", tool or _("question"))
        for pk, tool in PendingInterrupt.objects.filter(pk__in=ids).values_list(
            "pk", "tool_name"
        )
    }
    turns = AgentTurn.objects.filter(pk__in=ids).values_list("pk", "agent")
    return found | {pk: ("agentturn", _("turn of %s") % agent) for pk, agent in turns}


def _about(row: Delivery, known: dict[UUID, tuple[str, str]]) -> SafeString:
    _model, name = known.get(row.subject_id, ("", str(row.subject_id)))
    return show(name, limit=80, one_line=True).html


def _about_url(
    desk: DeskAdmin, row: Delivery, known: dict[UUID, tuple[str, str]]
) -> str:
    model, _name = known.get(row.subject_id, ("", ""))
    return desk.link("change", row.subject_id, model=model) if model else ""


def _code(status: int) -> str:
    return f"{status} {responses.get(status, '')}".rstrip()


def _plain(words: str) -> SafeString | None:
    return format_html("{}", words) if words else None

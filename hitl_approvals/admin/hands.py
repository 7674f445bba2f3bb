"""In whose hands a row is: what the pages say of it, and which buttons they offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals import permissions, selectors
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.passes import with_pass
from hitl_approvals.admin.text import show
from hitl_approvals.admin.times import clock
from hitl_approvals.enums import InterruptStatus
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.types import Person


@dataclass(frozen=True, slots=True)
class Hands:
    """Who holds a row, and until when."""

    id: Any
    name: SafeString
    until: SafeString


def of(row: PendingInterrupt, now: datetime) -> Hands | None:
    """Return who holds an open row; None is nobody."""
    if not selectors.is_held(row, now):
        return None
    return Hands(
        id=row.assignee_id,
        name=show(selectors.holder_name(row), limit=60, one_line=True).html,
        until=clock(row.claim_until, now),
    )


def sentence(row: PendingInterrupt, user: Person, now: datetime) -> SafeString | None:
    """Say who else holds a row and whether that keeps this person from closing it."""
    found = of(row, now)
    if found is None or found.id == user.pk:
        return None
    words = _("{} holds this until {}. Nobody else decides it before that.")
    if permissions.may_assign(user):
        words = _("{} holds this until {}. You may decide it all the same.")
    return format_html(words, found.name, found.until)


def claim_urls(
    desk: DeskAdmin, user: Person, rows: Sequence[PendingInterrupt], now: datetime
) -> dict[UUID, str]:
    """Return, for those rows of a list that this person could take in hand, where."""
    free = [one for one in rows if of(one, now) is None]
    doubts = permissions.may_settle(user)
    # Asked for the held ones too: as many queries whoever holds them.
    waiting = [one.pk for one in rows if one.status == InterruptStatus.PENDING]
    found = permissions.decidable_by(user).filter(pk__in=waiting)
    mine = set(found.values_list("pk", flat=True)) if waiting else set()
    return {
        one.pk: desk.link("claim", one.pk)
        for one in free
        if (one.pk in mine and not _over(one, now))
        or (doubts and one.status == InterruptStatus.IN_DOUBT)
    }


def _over(row: PendingInterrupt, now: datetime) -> bool:
    return row.expires_at is not None and row.expires_at <= now


def controls(
    desk: DeskAdmin, request: HttpRequest, row: PendingInterrupt, user: Person, now: Any
) -> dict[str, Any]:
    """Return which of claim, release and assign this person is offered, and where."""
    pending = row.status == InterruptStatus.PENDING
    if row.status not in selectors.OPEN or (pending and _over(row, now)):
        return {}
    found = of(row, now)
    others = found is not None and found.id != user.pk
    assigns = permissions.may_assign(user)
    may_hold = permissions.why_not_hold(user, row) is None
    return {
        "may_claim": may_hold and (found is None or (others and assigns)),
        "take_over": others,
        "may_release": found is not None and (not others or assigns),
        "people": permissions.people_of(row) if assigns else [],
        "holder": None if found is None else found.id,
        "claim_url": with_pass(request, desk.link("claim", row.pk)),
        "release_url": with_pass(request, desk.link("release", row.pk)),
        "assign_url": with_pass(request, desk.link("assign", row.pk)),
    }

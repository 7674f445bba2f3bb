"""The line that says whether anything is stuck, as the desk and the admin's index show it."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hitl_approvals.admin import paging
from hitl_approvals.admin.base import DeskAdmin, person
from hitl_approvals.admin.text import show
from hitl_approvals.admin.times import span
from hitl_approvals.figures.status import Status, status
from hitl_approvals.types import Person


@dataclass(frozen=True, slots=True)
class Fact:
    """One part of the line."""

    words: str
    url: str = ""
    level: str = ""
    """`urgent` or `doubt` for what should not be so; empty for what may."""


@dataclass(frozen=True, slots=True)
class StatusLine:
    """The line in parts."""

    facts: list[Fact]
    queues: list[tuple[SafeString, str, str]]
    """Name, count and address of each queue in which something is open."""
    more_queues: bool


def for_desk(desk: DeskAdmin, request: HttpRequest) -> StatusLine | None:
    """Return the line for a page of the desk."""
    return line(person(request), desk.admin_site.name)


def line(user: Person, site: str) -> StatusLine | None:
    """Return what a person may know of the state of things; None if that is nothing.

    Args:
        user: Who looks.
        site: Name of the admin site that its links lead to.
    """
    found = status(user)
    if found is None:
        return None
    interrupts = _address(site, "pendinginterrupt")
    turns = _address(site, "agentturn")
    deliveries = _address(site, "delivery")
    return StatusLine(
        facts=[
            _open(found, interrupts),
            *_troubles(found, interrupts, turns),
            _owed(found),
            *_untold(found, deliveries),
            _swept(found),
        ],
        queues=[
            (
                show(one.title, limit=60, one_line=True).html,
                paging.counted(one.count),
                f"{interrupts}?queue={one.slug}" if interrupts else "",
            )
            for one in found.queues
        ],
        more_queues=found.more_queues,
    )


def _open(found: Status, url: str) -> Fact:
    if found.oldest is None:
        return Fact(_("Nothing is open."), url)
    words = ngettext("%(count)s open", "%(count)s open", found.open)
    return Fact(
        _("%(open)s, the oldest for %(age)s")
        % {
            "open": words % {"count": paging.counted(found.open)},
            "age": span(found.oldest),
        },
        url,
    )


def _troubles(found: Status, interrupts: str, turns: str) -> list[Fact]:
    made = []
    if found.in_doubt:
        words = _("%s in doubt") % paging.counted(found.in_doubt)
        url = f"{interrupts}?view=doubt" if interrupts else ""
        made.append(Fact(words, url, "doubt"))
    if found.attention:
        words = ngettext(
            "%(count)s turn needs attention",
            "%(count)s turns need attention",
            found.attention,
        ) % {"count": paging.counted(found.attention)}
        made.append(Fact(words, f"{turns}?view=stuck" if turns else "", "urgent"))
    return made


def _owed(found: Status) -> Fact:
    if found.owed_for is None:
        return Fact(_("no run is owed"))
    words = ngettext(
        "%(count)s run is owed, the oldest for %(age)s",
        "%(count)s runs are owed, the oldest for %(age)s",
        found.owed,
    )
    return Fact(
        words % {"count": paging.counted(found.owed), "age": span(found.owed_for)},
        level="urgent" if found.swept_late else "",
    )


def _untold(found: Status, url: str) -> list[Fact]:
    """Return what the outside was not told; nothing where it hears of everything."""
    made = []
    if found.overdue and found.overdue_for is not None:
        words = ngettext(
            "%(count)s delivery is overdue, the oldest for %(age)s",
            "%(count)s deliveries are overdue, the oldest for %(age)s",
            found.overdue,
        )
        said = {"count": paging.counted(found.overdue), "age": span(found.overdue_for)}
        made.append(Fact(words % said, url, "urgent"))
    if found.failing:
        words = ngettext(
            "%(count)s webhook endpoint fails",
            "%(count)s webhook endpoints fail",
            found.failing,
        ) % {"count": paging.counted(found.failing)}
        made.append(Fact(words, url, "urgent"))
    if found.given_up:
        words = ngettext(
            "%(count)s delivery was given up in the last day",
            "%(count)s deliveries were given up in the last day",
            found.given_up,
        ) % {"count": paging.counted(found.given_up)}
        made.append(Fact(words, f"{url}?view=given_up" if url else "", "urgent"))
    return made


def _swept(found: Status) -> Fact:
    if found.swept is None:
        return Fact(_("no sweeper has ever come by"), level="urgent")
    words = _("a sweeper came by %s ago") % span(found.swept)
    return Fact(words, level="urgent" if found.swept_late else "")


def _address(site: str, model: str) -> str:
    try:
        return reverse(f"admin:hitl_approvals_{model}_changelist", current_app=site)
    except NoReverseMatch:
        return ""

"""Moments and spans as people read them: the reviewer's zone, at most two units."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

URGENT = timedelta(minutes=15)
SOON = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Left:
    """The time that is left, in words, and how loudly to say it."""

    words: str
    level: str
    """`urgent`, `soon`, `later` or `never`."""


def span(delta: timedelta) -> str:
    """Return a span in at most two units: `3 h 9 min`."""
    seconds = max(int(delta.total_seconds()), 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if days:
        day = ngettext("%d day", "%d days", days) % days
        rest = hours - days * 24
        return f"{day} {_('%d h') % rest}" if rest else day
    if hours:
        rest = minutes - hours * 60
        hour = _("%d h") % hours
        return f"{hour} {_('%d min') % rest}" if rest else hour
    if minutes:
        return _("%d min") % minutes
    return _("%d s") % seconds


def left(until: datetime | None, now: datetime) -> Left:
    """Return how long there is to decide."""
    if until is None:
        return Left(_("no limit"), "never")
    rest = until - now
    words = _("%s left") % span(rest) if rest > timedelta() else _("time is up")
    if rest <= URGENT:
        return Left(words, "urgent")
    return Left(words, "soon" if rest <= SOON else "later")


def moment(value: datetime | None, now: datetime | None = None) -> SafeString:
    """Return a `<time>`: the clock today, with the date on other days."""
    if value is None:
        return format_html("{}", "–")
    local = timezone.localtime(value)
    today = timezone.localtime(now).date() if now else timezone.localdate()
    text = date_format(local, "H:i:s")
    if local.date() != today:
        text = f"{date_format(local, 'j M Y')}, {text}"
    stamp = value.astimezone(UTC).isoformat(timespec="seconds")
    return format_html('<time datetime="{}">{}</time>', stamp, text)


def clock(value: datetime | None, now: datetime | None = None) -> SafeString:
    """Return a `<time>` to the minute, for what lasts until then."""
    if value is None:
        return format_html("{}", "–")
    local = timezone.localtime(value)
    today = timezone.localtime(now).date() if now else timezone.localdate()
    text = date_format(local, "H:i")
    if local.date() != today:
        text = f"{date_format(local, 'j M Y')}, {text}"
    stamp = value.astimezone(UTC).isoformat(timespec="seconds")
    return format_html('<time datetime="{}">{}</time>', stamp, text)


def full(value: datetime) -> str:
    """Return a moment with its date, in the reviewer's zone."""
    return date_format(timezone.localtime(value), "j M Y, H:i:s")


def utc(value: datetime) -> str:
    """Return a moment's time in UTC."""
    return f"{date_format(value.astimezone(UTC), 'H:i:s')} UTC"

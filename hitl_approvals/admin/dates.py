"""Dates and times in a call's arguments: the reviewer's clock, UTC beside it, nothing lost."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def moment_html(text: str) -> SafeString | None:
    """Return a moment as people read it; None for what is no plain ISO 8601."""
    if not _MOMENT.fullmatch(text):
        return None
    try:
        value = datetime.fromisoformat(text)
        if value.tzinfo is None:
            return _shown(text, value, _("no time zone given"))
        local = timezone.localtime(value)
        there = value.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    hint = f"{_clock(there)} UTC"
    if there.date() != local.date():
        hint = f"{date_format(there, 'j M Y')}, {hint}"
    if value.utcoffset() != there.utcoffset():
        hint = _("%(utc)s, written as %(text)s") % {"utc": hint, "text": text}
    return _shown(text, local, hint)


def day_html(text: str) -> SafeString | None:
    """Return a day as people read it; None for what is no plain ISO 8601."""
    if not _DAY.fullmatch(text):
        return None
    try:
        value = date.fromisoformat(text)
    except ValueError:
        return None
    return _element(text, date_format(value, "j M Y"))


def _shown(text: str, value: datetime, hint: str) -> SafeString:
    words = f"{date_format(value, 'j M Y')}, {_clock(value)}"
    html = _element(text, words)
    return format_html('{} <span class="desk-hint">{}</span>', html, hint)


def _element(text: str, words: str) -> SafeString:
    return format_html(
        '<bdi class="desk-val"><time datetime="{}" title="{}">{}</time></bdi>',
        text,
        text,
        words,
    )


def _clock(value: datetime) -> str:
    """Return the time of day with seconds only where there are some."""
    if not value.second and not value.microsecond:
        return date_format(value, "H:i")
    fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
    return f"{date_format(value, 'H:i:s')}{fraction}"

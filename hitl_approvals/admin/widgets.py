"""Which widget can carry a value there and back, and how values are compared."""

from __future__ import annotations

from datetime import date
from typing import Any

from django.utils import timezone

from hitl_approvals import canonical
from hitl_approvals.admin import parsing
from hitl_approvals.admin.arguments import fits
from hitl_approvals.admin.shapes import (
    ANY,
    BOOLEAN,
    CHOICE,
    DATE,
    DATETIME,
    MISSING,
    TEXT,
    Shape,
)
from hitl_approvals.admin.text import plain, visible
from hitl_approvals.admin.values import scalar_text

LINE, AREA, JSON, RADIOS, SELECT, DAY, MINUTE = (
    "line",
    "area",
    "json",
    "radios",
    "select",
    "day",
    "minute",
)
"""The widgets, named for the template."""

NULL, OMIT = "null", "omit"
"""Values of the choices that are no value."""
_LONG = 60
_FEW = 4


def same(one: Any, other: Any) -> bool:
    """Compare as JSON: 1, 1.0 and true are three values."""
    if one is MISSING or other is MISSING:
        return one is other
    return _canonical(one) == _canonical(other)


def _canonical(value: Any) -> str:
    return canonical.dumps(value, max_bytes=None, max_depth=None)


def choice_label(value: Any) -> str:
    """Return a choice as it is read in a list of them."""
    if isinstance(value, str):
        return plain(value) if value.strip() else f"“{plain(value)}”"
    return scalar_text(value) if isinstance(value, (bool, int, float)) else str(value)


def widget_for(shape: Shape, original: Any) -> str:
    """Choose what can carry the value there and back; else it is edited as JSON."""
    given = original is not MISSING and original is not None
    if shape.kind == ANY or (original is None and not shape.nullable):
        return JSON
    if given and not _carried(shape, original):
        return JSON
    if shape.kind == BOOLEAN:
        return RADIOS
    if shape.kind == CHOICE:
        few = len(shape.choices) <= _FEW and not given
        return RADIOS if few else SELECT
    if shape.kind == DATE and (not given or _is_day(original)):
        return DAY
    if shape.kind == DATETIME and (not given or parsing.is_minute(original)):
        return MINUTE
    if shape.kind in (DATE, DATETIME, TEXT):
        # What is no date is shown as it came; a line drops the breaks of a text.
        return AREA if _is_long(shape, original if given else None) else LINE
    return LINE


def _carried(shape: Shape, value: Any) -> bool:
    if shape.kind == CHOICE:
        return any(same(one, value) for one in shape.choices)
    if isinstance(value, str) and (not visible(value) or "\t" in value):
        return False
    return fits(shape, value)


def _is_long(shape: Shape, value: str | None) -> bool:
    if value is None:
        return shape.max_length is None or shape.max_length > _LONG * 2
    return len(value) > _LONG or "\n" in value


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def zone_name() -> str:
    """Return the name of the zone in which dates are typed."""
    return timezone.get_current_timezone_name()

"""From typed text to JSON values, one reader a kind. Guesses nothing, rounds nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.forms.utils import from_current_timezone
from django.utils import timezone
from django.utils.translation import gettext as _

from hitl_approvals import canonical
from hitl_approvals.admin import shapes
from hitl_approvals.conf import hitl_settings
from hitl_approvals.exceptions import PayloadRejected

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Unreadable(Exception):
    """What was typed is not a value of the kind; the text is for the person."""


def lines(text: str) -> str:
    """Return posted text with the line breaks that browsers change put back."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def json_value(text: str) -> Any:
    """Read JSON strictly.

    Raises:
        Unreadable: It is not JSON, or too large for this site.
    """
    try:
        return canonical.loads(
            text,
            max_bytes=hitl_settings.max_payload_bytes,
            max_depth=hitl_settings.max_depth,
        )
    except PayloadRejected as error:
        raise Unreadable(
            _("This is not readable as JSON: %s") % error.errors[0]["message"]
        ) from error


def is_minute(text: str) -> bool:
    """Tell whether a browser's field for date and time can hold this moment exactly."""
    try:
        value = local_minute(text)
    except (ValueError, OverflowError):
        return False
    return value.microsecond == 0 and value.second == 0 and _style(text) is not None


def local_minute(text: str) -> datetime:
    """Return a moment as the reviewer's clock shows it, without a zone."""
    value = datetime.fromisoformat(text)
    return value if value.tzinfo is None else timezone.make_naive(value)


def _style(text: str) -> str | None:
    """Tell how an ISO text names its zone: `Z`, an offset, or not at all."""
    if not re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?", text, re.ASCII
    ):
        return None
    if text.endswith("Z"):
        return "Z"
    return "offset" if text[-6] in "+-" else "none"


def _text(raw: str, original: Any) -> str:
    return raw


def _integer(raw: str, original: Any) -> int:
    digits = raw.strip()
    if not _INTEGER.fullmatch(digits):
        raise Unreadable(_("Type a whole number, digits only."))
    if len(digits) > canonical.MAX_DIGITS:
        raise Unreadable(_("This number has too many digits."))
    return int(digits)


def _number(raw: str, original: Any) -> int | float:
    digits = raw.strip()
    if _INTEGER.fullmatch(digits):
        return _integer(digits, original)
    if not _NUMBER.fullmatch(digits) or not math.isfinite(float(digits)):
        raise Unreadable(_("Type a number, with a point for decimals."))
    return float(digits)


def _decimal(raw: str, original: Any) -> int | str:
    digits = raw.strip()
    if not _NUMBER.fullmatch(digits):
        raise Unreadable(_("Type a number, with a point for decimals."))
    if isinstance(original, int) and _INTEGER.fullmatch(digits):
        return _integer(digits, original)
    # Text is exact; a JSON number would pass through a binary fraction.
    return digits


def _date(raw: str, original: Any) -> str:
    try:
        return date.fromisoformat(raw.strip()).isoformat()
    except ValueError:
        raise Unreadable(_("Type a date such as 2026-12-31.")) from None


def _datetime(raw: str, original: Any) -> str:
    text = raw.strip()
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise Unreadable(_("Type a date and time such as 2026-12-31T18:00.")) from None
    if value.tzinfo is not None:
        return text
    style = _style(original) if isinstance(original, str) else "offset"
    if style == "none":
        return value.isoformat()
    try:
        aware = from_current_timezone(value)
    except ValidationError:
        raise Unreadable(
            _("The clocks change at that time: it exists twice or not at all.")
        ) from None
    if style == "Z":
        return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return _whole_offset(timezone.localtime(aware)).isoformat()


def _whole_offset(value: datetime) -> datetime:
    offset = value.utcoffset() or timedelta()
    # Zones of long ago are off by seconds, which ISO 8601 cannot say.
    return value if offset.seconds % 60 == 0 else value.astimezone(UTC)


READERS: dict[str, Callable[[str, Any], Any]] = {
    shapes.TEXT: _text,
    shapes.INTEGER: _integer,
    shapes.NUMBER: _number,
    shapes.DECIMAL: _decimal,
    shapes.DATE: _date,
    shapes.DATETIME: _datetime,
}
"""By kind of shape; choices and booleans are not typed."""

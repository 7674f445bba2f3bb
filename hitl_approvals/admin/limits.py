"""What a JSON Schema asks of a value beyond its type, in words for the person who types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hitl_approvals.admin.text import plain


def words(schema: Mapping[str, Any]) -> str:
    """Return the bounds of a schema, joined by commas; empty if it has none."""
    return ", ".join(one for one in (*_range(schema), *_size(schema)) if one)


def _range(schema: Mapping[str, Any]) -> list[str]:
    said = []
    for key, text in (
        ("minimum", _("at least %s")),
        ("exclusiveMinimum", _("more than %s")),
        ("maximum", _("at most %s")),
        ("exclusiveMaximum", _("less than %s")),
        ("multipleOf", _("a multiple of %s")),
    ):
        bound = schema.get(key)
        if isinstance(bound, (int, float)) and not isinstance(bound, bool):
            # What pydantic writes is a float, even for a bound of 0.
            said.append(text % str(bound).removesuffix(".0"))
    return said


def _size(schema: Mapping[str, Any]) -> list[str]:
    said = []
    least = _count(schema, "minLength")
    if least:
        text = ngettext("at least %d character", "at least %d characters", least)
        said.append(text % least)
    least, most = _count(schema, "minItems"), _count(schema, "maxItems")
    if least:
        said.append(ngettext("at least %d item", "at least %d items", least) % least)
    if most is not None:
        said.append(ngettext("at most %d item", "at most %d items", most) % most)
    pattern = schema.get("pattern")
    # What pydantic writes beside a Decimal is for machines.
    if isinstance(pattern, str) and schema.get("type") == "string":
        said.append(_("of the form %s") % plain(pattern, 60))
    return said


def _count(schema: Mapping[str, Any], key: str) -> int | None:
    found = schema.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None

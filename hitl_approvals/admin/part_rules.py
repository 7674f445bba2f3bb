"""Which lists and objects are shown as forms, and how large they may be for that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_approvals.admin import shapes

MAX_DEPTH = 4
"""Groups that may stand inside each other; what is deeper is written as JSON."""
MAX_PARTS = 60
"""Single values that a group may hold and still be a form."""


def fits(value: Any) -> bool:
    """Tell whether a value is small enough to be a form."""
    left = MAX_PARTS
    todo = [value]
    while todo and left >= 0:
        one = todo.pop()
        left -= 1
        if isinstance(one, Mapping):
            todo += one.values()
        elif isinstance(one, list):
            todo += one
    return left >= 0


def has_parts(inner: Mapping[str, Any]) -> bool:
    """Tell whether a schema says what stands in a list or an object."""
    if inner.get("type") == "array":
        items = inner.get("items")
        return isinstance(items, Mapping) and bool(items) and "prefixItems" not in inner
    if inner.get("type") != "object":
        return False
    extra = inner.get("additionalProperties")
    known = shapes.properties(inner)
    return 0 < len(known) <= MAX_PARTS or (not known and isinstance(extra, Mapping))


def numbers(text: str) -> list[int]:
    """Return the entries that a form sent along, each once."""
    found = [int(one) for one in text.split(",") if one.isascii() and one.isdecimal()]
    return list(dict.fromkeys(one for one in found if one < 10_000))[: MAX_PARTS * 2]

"""The shapes in which models write a tool call. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def read_shape(raw: Any) -> tuple[str, str, Any]:
    """Return id, name and arguments of a call in our shape or OpenAI's nesting."""
    if not isinstance(raw, Mapping):
        return "", "", None
    inner = raw.get("function")
    if isinstance(inner, Mapping):
        name, args = inner.get("name"), inner.get("arguments", {})
    else:
        name, args = raw.get("name"), raw.get("args", {})
    call_id = raw.get("id")
    return (
        "" if call_id is None else str(call_id),
        name if isinstance(name, str) else "",
        args,
    )

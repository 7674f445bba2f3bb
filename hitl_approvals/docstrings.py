"""Splits a Google docstring into text and argument notes. Reads text, resolves nothing."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# `name: note`, `name (type): note`; the type may itself hold parentheses.
_ENTRY = re.compile(r"(?P<name>\w+)\s*(?:\(.*?\))?\s*:\s*(?P<note>.*)")


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return a docstring without its section on arguments, and that section by name."""
    kept: list[str] = []
    section: list[str] = []
    inside = False
    for line in inspect.cleandoc(function.__doc__ or "").splitlines():
        if line.rstrip() in ("Args:", "Arguments:"):
            inside = True
            continue
        inside = inside and (not line or line[0].isspace())
        (section if inside else kept).append(line)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return text, _notes(section)


def _notes(section: list[str]) -> dict[str, str]:
    lines = [line for line in section if line.strip()]
    indent = min((_width(line) for line in lines), default=0)
    notes: dict[str, str] = {}
    name = ""
    for line in lines:
        entry = _ENTRY.fullmatch(line.strip()) if _width(line) == indent else None
        if entry:
            name = entry["name"]
            notes[name] = entry["note"]
        elif name:
            notes[name] = f"{notes[name]} {line.strip()}".strip()
    return notes


def _width(line: str) -> int:
    return len(line) - len(line.lstrip())

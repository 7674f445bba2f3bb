"""Examples for the document, as the API answered them once; a test asks it again."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def all_of_them() -> dict[str, Any]:
    """Return, for each operation, the `body` that was sent and the `answers` by status."""
    found = files(__package__).joinpath("examples.json")
    examples: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
    return examples


def of(operation: str) -> dict[str, Any]:
    """Return what is kept of one operation; nothing of some."""
    found: dict[str, Any] = all_of_them().get(operation, {})
    return found

"""The other side of the tools: a file that no database transaction takes anything back from.

Every call appends one line and waits for the disk, so that a kill right after it cannot
unsay it. Knows no Django.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

folder = Path("/nonexistent")
"""Where the calls of this lane go; set before a process is forked."""


def act(**what: Any) -> None:
    """Let something happen in the world."""
    line = json.dumps({**what, "pid": os.getpid()}) + "\n"
    handle = os.open(
        folder / "calls.jsonl", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600
    )
    try:
        os.write(handle, line.encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def calls(case: str) -> list[dict[str, Any]]:
    """Return every call of a case, in the order in which they landed."""
    return [call for call in _all() if call["case"] == case]


def find(key: str) -> dict[str, Any] | None:
    """Return the call that came with an idempotency key."""
    return next((call for call in _all() if call["key"] == key), None)


def first_time(name: str) -> bool:
    """Tell whether nobody asked this before; remembers that somebody did."""
    try:
        (folder / f"{name}.once").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _all() -> list[dict[str, Any]]:
    path = folder / "calls.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]

"""The other side of the tools: a file that no database transaction takes anything back from.

Every call appends one line and waits for the disk, so that a kill right after it cannot
unsay it. Knows no Django.
"""

from __future__ import annotations

import json
import os
import random
import time
from datetime import datetime
from pathlib import Path
from typing import Any

folder = Path("/nonexistent")
"""Where the calls of this lane go; set before a process is forked."""

slowness = 0.0
"""How long the other side lets wait at most, in seconds."""


class TooLate(Exception):
    """The other side takes no call whose time is over."""


def dawdle() -> None:
    """Take some time, or none."""
    if slowness:
        time.sleep(random.uniform(0, slowness))


def chance(share: float) -> bool:
    """Tell by chance whether something happens."""
    return random.random() < share


def act(*, deadline: datetime | None = None, **what: Any) -> None:
    """Let something happen in the world.

    Raises:
        TooLate: The deadline has passed, and nothing happened.
    """
    if deadline is not None and time.time() > deadline.timestamp():
        raise TooLate
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
    return [call for call in every_call() if call["case"] == case]


def find(key: str) -> dict[str, Any] | None:
    """Return the call that came with an idempotency key."""
    return next((call for call in every_call() if call["key"] == key), None)


def first_time(name: str) -> bool:
    """Tell whether nobody asked this before; remembers that somebody did."""
    try:
        (folder / f"{name}.once").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def every_call() -> list[dict[str, Any]]:
    """Return every call that ever landed."""
    path = folder / "calls.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]

"""Holds a worker still between its claim and its end, so that the check can kill it there.

Does nothing unless the environment names a file to wait for.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models.signals import post_save

FILE = "DEMO_PAUSE_FILE"
"""Names a file; while it is there, workers that made a refund wait."""
POINT = "DEMO_PAUSE_POINT"
"""Names where they wait."""
BEFORE_COMMIT, AFTER_COMMIT = "before-commit", "after-commit"
POINTS = (AFTER_COMMIT, BEFORE_COMMIT)

_MOST_SECONDS = 60


def arm() -> None:
    """Make refunds wait, if the environment says so."""
    if os.environ.get(FILE):
        post_save.connect(
            _refund_saved, sender="shop.Refund", dispatch_uid="demo.pause"
        )


def reached(file: Path) -> Path:
    """Return the file by which a worker says that it waits."""
    return file.with_suffix(".reached")


def _refund_saved(**_signal: Any) -> None:
    if os.environ.get(POINT) == BEFORE_COMMIT:
        _wait()
    else:
        transaction.on_commit(_wait)


def _wait() -> None:
    file = Path(os.environ[FILE])
    if not file.exists():
        return
    reached(file).write_text(str(os.getpid()))
    deadline = time.monotonic() + _MOST_SECONDS
    while file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)

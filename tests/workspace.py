"""Names what belongs to one test run, so that runs side by side never meet.

Knows no Django and starts nothing.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import platform
import re
import shutil
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN_VARIABLE = "HITL_TEST_RUN"
"""Holds the run's name; child processes inherit it and so find the same database."""

_RUN_NAME = re.compile(r"(?P<checkout>[0-9a-f]{8})_(?P<pid>[0-9]+)")


def checkout_name() -> str:
    """Name this working tree on this machine."""
    place = f"{platform.node()}:{ROOT}"
    return hashlib.sha256(place.encode()).hexdigest()[:8]


def run_name() -> str:
    """Name this test run; the first process of a run decides."""
    name = os.environ.get(RUN_VARIABLE)
    if name is None:
        name = f"{checkout_name()}_{os.getpid()}"
        os.environ[RUN_VARIABLE] = name
    return name


def is_abandoned(name: str) -> bool:
    """Tell whether a run's name belongs to this tree and its process is gone."""
    match = _RUN_NAME.fullmatch(name)
    if match is None or match["checkout"] != checkout_name():
        return False
    return not _is_alive(int(match["pid"]))


def run_directory() -> Path:
    """Return the run's own directory; the process that made it removes it."""
    path = directory_of(run_name())
    if not path.exists():
        path.mkdir(mode=0o700, exist_ok=True)
        atexit.register(_remove, path, os.getpid())
    return path


def directory_of(name: str) -> Path:
    """Return where the run of that name keeps its files."""
    return Path(tempfile.gettempdir()) / f"hitl-tests-{name}"


def remove_abandoned_directories() -> None:
    """Delete what killed runs of this tree left behind."""
    for path in Path(tempfile.gettempdir()).glob("hitl-tests-*"):
        if is_abandoned(path.name.removeprefix("hitl-tests-")):
            shutil.rmtree(path, ignore_errors=True)


def _remove(path: Path, maker: int) -> None:
    # A forked child inherits the exit handler, not the directory.
    if os.getpid() == maker:
        shutil.rmtree(path, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

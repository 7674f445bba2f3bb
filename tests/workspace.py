"""Names what belongs to one test run, so that runs side by side never meet.

Knows no Django and starts nothing.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import platform
import re
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN_VARIABLE = "HITL_TEST_RUN"
"""Holds the run's name; child processes inherit it and so find the same database."""

_DATABASE_PREFIX = "test_hitl_"
_FILE_PREFIX = "hitl-tests-"
_RUN_NAME = re.compile(r"(?P<checkout>[0-9a-f]{8})_(?P<pid>[0-9]+)(_\w+)?")


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
        atexit.register(_remove_files, name, os.getpid())
    return name


def is_abandoned(name: str) -> bool:
    """Tell whether a run's name belongs to this tree and its process is gone."""
    match = _RUN_NAME.fullmatch(name)
    if match is None or match["checkout"] != checkout_name():
        return False
    return not _is_alive(int(match["pid"]))


def run_database() -> str:
    """Name this run's database on a server."""
    return f"{_DATABASE_PREFIX}{run_name()}"


def is_abandoned_database(name: str) -> bool:
    """Tell whether a database on a server was left by a killed run of this tree."""
    if not name.startswith(_DATABASE_PREFIX):
        return False
    return is_abandoned(name.removeprefix(_DATABASE_PREFIX))


def run_file(suffix: str) -> Path:
    """Return where this run keeps a file; the process that named the run removes it.

    Makes nothing: settings are also read by tools that leave without cleaning up.
    """
    return _path(run_name(), suffix)


def remove_abandoned_files() -> None:
    """Delete what killed runs of this tree left behind."""
    for path in Path(tempfile.gettempdir()).glob(f"{_FILE_PREFIX}*"):
        name = path.name.removeprefix(_FILE_PREFIX).partition(".")[0]
        if is_abandoned(name):
            path.unlink(missing_ok=True)


def _path(name: str, suffix: str) -> Path:
    return Path(tempfile.gettempdir()) / f"{_FILE_PREFIX}{name}.{suffix}"


def remove_files(name: str) -> None:
    """Delete what a run keeps in files."""
    for path in Path(tempfile.gettempdir()).glob(_path(name, "*").name):
        path.unlink(missing_ok=True)


def _remove_files(name: str, maker: int) -> None:
    # A forked child inherits the exit handler, not the files.
    if os.getpid() == maker:
        remove_files(name)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

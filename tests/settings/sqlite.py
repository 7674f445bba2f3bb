"""The suite on SQLite, set up as the documentation tells sites to."""

from __future__ import annotations

from typing import Any

from tests.settings.base import *  # noqa: F403  settings are made by layering
from tests.workspace import run_file

# A file, so that every thread and every process has a connection of its own.
_FILE = str(run_file("sqlite3"))

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": _FILE,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            # Sites are told FULL, against power loss. Tests kill processes, not machines,
            # and would spend most of their time waiting for the disk.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;",
        },
        "TEST": {"NAME": _FILE},
    },
}

"""The suite on PostgreSQL: the server named by `HITL_TEST_POSTGRES_URL`."""

from __future__ import annotations

import os
from typing import Any

from tests.settings.base import *  # noqa: F403  settings are made by layering
from tests.settings.database_url import database_from_url
from tests.workspace import run_database

DATABASES: dict[str, dict[str, Any]] = {
    "default": database_from_url(
        os.environ.get("HITL_TEST_POSTGRES_URL")
        or "postgresql://postgres@127.0.0.1:5432/postgres",
        name=run_database(),
    ),
}
# As for SQLite: tests kill processes, and a killed client loses no commit by this.
DATABASES["default"]["OPTIONS"].setdefault("options", "-c synchronous_commit=off")
# `template1` cannot be copied while another run copies it.
DATABASES["default"]["TEST"]["TEMPLATE"] = "template0"

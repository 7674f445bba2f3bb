"""The database that the outer test run uses, for a site of one's own on that server."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

VARIABLE = "HITL_SITE_DATABASE"
"""Name of the settings module of the outer run's database."""


def database() -> dict[str, Any]:
    """Return Django's settings of a database that belongs to this process alone."""
    name = os.environ.get(VARIABLE, "sqlite")
    described: dict[str, Any] = import_module(f"tests.settings.{name}").DATABASES[
        "default"
    ]
    return described

"""A site whose `default` is empty: everything is on `approvals`, by a router."""

from __future__ import annotations

from typing import Any

from tests.settings.base import *  # noqa: F403  settings are made by layering
from tests.sites.database import database

DATABASES: dict[str, dict[str, Any]] = {
    # Django's way to say that there is none: whatever touches it raises.
    "default": {},
    "approvals": database(),
}
# Django makes `default` first unless it is told that nothing needs it.
DATABASES["approvals"]["TEST"]["DEPENDENCIES"] = []
DATABASE_ROUTERS = ["tests.sites.two_databases.router.Approvals"]

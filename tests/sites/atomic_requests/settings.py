"""A site that wraps every request in a transaction."""

from __future__ import annotations

from typing import Any

from tests.settings.base import *  # noqa: F403  settings are made by layering
from tests.sites.database import database

DATABASES: dict[str, dict[str, Any]] = {
    "default": {**database(), "ATOMIC_REQUESTS": True},
}
ROOT_URLCONF = "tests.sites.atomic_requests.urls"

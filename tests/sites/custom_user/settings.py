"""A site with a user model of its own: a UUID key, an e-mail address as name."""

from __future__ import annotations

from typing import Any

from tests.settings import base
from tests.settings.base import *  # noqa: F403  settings are made by layering
from tests.sites.database import database

DATABASES: dict[str, dict[str, Any]] = {"default": database()}
INSTALLED_APPS = [*base.INSTALLED_APPS, "tests.sites.custom_user.people"]
AUTH_USER_MODEL = "people.Person"

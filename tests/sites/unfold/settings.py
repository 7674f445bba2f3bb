"""A site whose admin has another theme, django-unfold."""

from __future__ import annotations

from typing import Any

from tests.settings import base
from tests.settings.base import *  # noqa: F403  settings are made by layering
from tests.sites.database import database

DATABASES: dict[str, dict[str, Any]] = {"default": database()}
INSTALLED_APPS = ["unfold", *base.INSTALLED_APPS]

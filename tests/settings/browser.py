"""The site that browsers visit: the run's own SQLite file, and a strict policy."""

from __future__ import annotations

from tests.settings import sqlite
from tests.settings.sqlite import *  # noqa: F403  settings are made by layering

INSTALLED_APPS = [*sqlite.INSTALLED_APPS, "tests.browser"]
MIDDLEWARE = [
    "tests.browser.policy.strict_policy",
    *sqlite.MIDDLEWARE,
    "django.middleware.locale.LocaleMiddleware",
]

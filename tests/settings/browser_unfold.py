"""The same site under django-unfold, whose own pages need more than a strict policy."""

from __future__ import annotations

from tests.settings import browser
from tests.settings.browser import *  # noqa: F403  settings are made by layering

INSTALLED_APPS = ["unfold", *browser.INSTALLED_APPS]
MIDDLEWARE = browser.MIDDLEWARE[1:]

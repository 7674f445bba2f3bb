"""The example site with the app that breaks it."""

from __future__ import annotations

from tests.e2e.hasty import *  # noqa: F403  settings are made by layering
from tests.e2e.hasty import INSTALLED_APPS as WORKING

INSTALLED_APPS = [*WORKING, "tests.e2e.broken.apps.BrokenConfig"]

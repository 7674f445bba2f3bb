"""The example site with the app that breaks it."""

from __future__ import annotations

from example_project.settings import *  # noqa: F403  settings are made by layering
from example_project.settings import INSTALLED_APPS as WORKING

INSTALLED_APPS = [*WORKING, "tests.e2e.broken.apps.BrokenConfig"]

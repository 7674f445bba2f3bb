"""For the type checker only: the tests' site and the example's, in one. Runs nowhere."""

from __future__ import annotations

from example_project.settings import *  # noqa: F403  settings are made by layering
from tests.settings import base

INSTALLED_APPS = [
    *base.INSTALLED_APPS,
    "example_project.shop",
    "example_project.demo",
]
ROOT_URLCONF = base.ROOT_URLCONF

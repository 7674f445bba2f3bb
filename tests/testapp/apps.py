"""The configuration of the app that stands for a site in tests."""

from __future__ import annotations

from django.apps import AppConfig


class TestAppConfig(AppConfig):
    """A site's own app: its models and its agents."""

    name = "tests.testapp"
    label = "testapp"
    default_auto_field = "django.db.models.BigAutoField"

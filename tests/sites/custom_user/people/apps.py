"""The app that holds the site's people."""

from __future__ import annotations

from django.apps import AppConfig


class PeopleConfig(AppConfig):
    name = "tests.sites.custom_user.people"
    label = "people"
    default_auto_field = "django.db.models.BigAutoField"

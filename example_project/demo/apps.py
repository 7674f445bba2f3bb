"""The configuration of the demonstration."""

from __future__ import annotations

from django.apps import AppConfig


class DemoConfig(AppConfig):
    """The command, its people and, in the check's worker, a place to be killed at."""

    name = "example_project.demo"
    label = "demo"

    def ready(self) -> None:
        from example_project.demo import pauses

        pauses.arm()

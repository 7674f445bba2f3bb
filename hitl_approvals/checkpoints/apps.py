"""The configuration of the app; add `hitl_approvals.checkpoints` to INSTALLED_APPS."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class HitlCheckpointsConfig(AppConfig):
    """Names the app, and lets go of connections when tables may have changed."""

    name = "hitl_approvals.checkpoints"
    label = "hitl_checkpoints"
    verbose_name = "LangGraph checkpoints"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        post_migrate.connect(
            _let_go, sender=self, dispatch_uid="hitl_checkpoints.lending"
        )


def _let_go(using: str, **kwargs: Any) -> None:
    # Also the end of a transactional test: the test database can be dropped then.
    from hitl_approvals.checkpoints.lending import close_idle_connections

    close_idle_connections(using)

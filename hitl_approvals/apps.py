"""The application's configuration: what is connected when Django starts."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class HitlApprovalsConfig(AppConfig):
    """Connects the checks, the default queue and the discovery of agents."""

    name = "hitl_approvals"
    label = "hitl_approvals"
    verbose_name = _("Approvals")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from hitl_approvals import checks  # noqa: F401  registers on import
        from hitl_approvals.agents import request
        from hitl_approvals.registry import registry

        post_migrate.connect(
            _make_default_queue, sender=self, dispatch_uid="hitl_approvals.queue"
        )
        registry.add_agent(request.DEFINITION)
        autodiscover_modules("agents")


def _make_default_queue(using: str, **kwargs: Any) -> None:
    from hitl_approvals.services import queues

    queues.ensure_default(using=using)

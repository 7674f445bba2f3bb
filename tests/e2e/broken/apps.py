"""Makes a second refund and a second `resolved` with the first, and spares a worker."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.apps import AppConfig
from django.db.models.signals import post_save
from django.utils import timezone


class BrokenConfig(AppConfig):
    """Breaks each of the three things that the check counts."""

    name = "tests.e2e.broken"
    label = "broken"

    def ready(self) -> None:
        from example_project.demo.processes import Process

        post_save.connect(_twice, sender="shop.Refund", dispatch_uid="broken")
        Process.kill = _spare_the_first(Process.kill)


def _twice(instance: Any, **_signal: Any) -> None:
    from hitl_approvals.models import InterruptEvent

    type(instance).objects.bulk_create(
        [type(instance)(order=instance.order, amount=instance.amount)]
    )
    InterruptEvent.objects.create(
        subject_id=uuid4(),
        sequence=1,
        type="resolved",
        at=timezone.now(),
        status="resolved",
        hash="broken",
    )


def _spare_the_first(kill: Any) -> Any:
    spared: list[Any] = []

    def kill_all_but_one(self: Any) -> int:
        if spared:
            return kill(self)
        spared.append(self)
        # Popen reaps it; the pool's processes end with the worker.
        self._child.terminate()
        return self._child.wait()

    return kill_all_but_one

"""`manage.py hitl_sweep`: one pass of the sweeper, for cron and for looking."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from hitl_approvals import services


class Command(BaseCommand):
    """Makes one pass and says what it moved."""

    help = (
        "Make one pass over everything that time alone moves: announce owed runs, take "
        "turns from dead workers, expire, lapse, unblock. Workers do so by themselves."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        for kind, count in services.sweep().as_dict().items():
            self.stdout.write(f"{kind} {count}")

"""Runs owed turns and sends owed deliveries from their rows, without any broker."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import Error, close_old_connections

from hitl_approvals import delivering, engine
from hitl_approvals.delivering import Deliverer
from hitl_approvals.registry import registry
from hitl_approvals.services import partings, turns
from hitl_approvals.sweeping import Sweeper


class Command(BaseCommand):
    """Looks at the tables, does what is owed, sweeps; stops after the turn it is in."""

    help = (
        "Run owed agent turns and send owed webhooks without a broker "
        "(HITL_APPROVALS['DISPATCHER'] = 'worker'). Any number may run. SIGTERM and Ctrl-C end it after the turn "
        "that it is in."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--poll",
            type=float,
            default=1.0,
            help="Seconds between two looks at an empty table (default 1).",
        )
        parser.add_argument(
            "--once",
            action="store_true",
            help="Run what is owed now, then stop.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        sweeper, deliverer = Sweeper(), Deliverer()
        if not options["once"]:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: stop.set())
            sweeper.start()
            deliverer.start()
            self.stdout.write("hitl_worker is ready.")
        try:
            while not stop.is_set():
                ran = self._run_owed(stop)
                if options["once"] and not ran:
                    delivering.deliver_due()
                    return
                if not ran:
                    stop.wait(options["poll"])
        finally:
            sweeper.stop()
            deliverer.stop()
            sweeper.join(timeout=10)
            deliverer.join(timeout=10)

    def _run_owed(self, stop: threading.Event) -> int:
        """Run each owed turn once; return how many were not dropped."""
        ran = 0
        close_old_connections()
        try:
            owed = turns.owed(registry.runnable())
            # Workflows of cancelled turns last: nobody waits for those.
            for turn_id in [*owed, *partings.due_to(registry.agents)]:
                if stop.is_set():
                    break
                outcome = engine.run_turn(turn_id)
                if outcome != engine.DROPPED:
                    ran += 1
                    self.stdout.write(f"{turn_id}: {outcome}")
        except Error as error:
            # The rows are safe; a database that is away for a moment comes back.
            self.stderr.write(f"The database did not answer: {error}")
        finally:
            close_old_connections()
        return ran

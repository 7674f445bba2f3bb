"""Keeps a run's lease alive from a thread and a connection of its own."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from django.db import DatabaseError, connections

from hitl_approvals.conf import hitl_settings
from hitl_approvals.services import turns
from hitl_approvals.services.run import Run
from hitl_approvals.services.transactions import alias

logger = logging.getLogger("hitl_approvals")


class Heartbeat:
    """Extends the lease every third of it; a lost one stops the run before its next gate.

    Only a row count of 0 is a lost lease. A database that does not answer is not: the
    run's own next write will tell.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._beat, name=f"hitl-heartbeat-{run.turn.pk}", daemon=True
        )

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        try:
            while not self._stop.wait(hitl_settings.lease.total_seconds() / 3):
                try:
                    held = turns.extend_lease(self._run.turn.pk, self._run.fence)
                except DatabaseError:
                    logger.warning(
                        "Heartbeat of turn %s failed.", self._run.turn.pk, exc_info=True
                    )
                    connections[alias()].close()
                    continue
                if not held:
                    self._run.lost.set()
                    return
        finally:
            connections.close_all()

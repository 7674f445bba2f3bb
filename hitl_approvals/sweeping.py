"""A thread that sweeps again and again, for processes that stay up. Knows no Celery."""

from __future__ import annotations

import logging
import random
import threading

from django.db import connections

from hitl_approvals import services
from hitl_approvals.conf import hitl_settings

logger = logging.getLogger("hitl_approvals")


class Sweeper:
    """Makes a pass at once and then one every `SWEEP` seconds, until it is stopped.

    Any number may run at once, in any number of processes. It holds no connection
    between two passes, so that a process which forks hands none down.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def start(self) -> None:
        """Start the thread, unless it runs in this process already."""
        if self._thread is not None and self._thread.is_alive():
            return
        # Each thread has an event of its own: starting again must not revive one that
        # was told to stop and is still in its last pass.
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=_sweep_until, args=(self._stop,), name="hitl-sweeper", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Let the pass that is under way be the last. Takes no lock and does not wait."""
        self._stop.set()

    def join(self, timeout: float) -> bool:
        """Wait for the last pass; return whether the thread has ended."""
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()


def _sweep_until(stop: threading.Event) -> None:
    while not stop.is_set():
        _pass()
        # Workers that started together would otherwise sweep together for ever.
        jitter = random.uniform(0.8, 1.2)  # noqa: S311  spreads load, no secret
        stop.wait(hitl_settings.sweep.total_seconds() * jitter)


def _pass() -> None:
    """Make one pass; whatever goes wrong in it must not end the passes."""
    try:
        try:
            report = services.sweep().as_dict()
        finally:
            connections.close_all()
    except Exception:
        logger.exception("A pass of the sweeper failed; the next one goes on.")
        return
    moved = {kind: count for kind, count in report.items() if count}
    if moved:
        logger.info("Swept: %s.", moved)

"""Threads that send what webhooks are owed, for processes that stay up. Knows no Celery."""

from __future__ import annotations

import logging
import threading
import time

from django.db import Error, connections

from hitl_approvals.services import deliveries, upkeep

logger = logging.getLogger("hitl_approvals")

POLL_SECONDS = 1.0


class Deliverer:
    """Looks every second which channels are owed something, and drains each in a thread.

    So a slow receiver holds up neither the turns nor another receiver. Any number may
    run at once, in any number of processes.
    """

    def __init__(self, *, poll: float = POLL_SECONDS) -> None:
        self._poll = poll
        self._stop = threading.Event()
        self._looking: threading.Thread | None = None
        self._draining: dict[str, threading.Thread] = {}

    def start(self) -> None:
        """Start looking; to be called once."""
        self._looking = threading.Thread(
            target=self._look_until_stopped, name="hitl-deliverer", daemon=True
        )
        self._looking.start()

    def stop(self) -> None:
        """Let the attempts that are under way be the last. Does not wait."""
        self._stop.set()

    def join(self, timeout: float) -> None:
        """Wait for the last attempts; one that is cut off will be made again."""
        ends = time.monotonic() + timeout
        # First the one that starts the others.
        if self._looking is not None:
            self._looking.join(timeout)
        for thread in list(self._draining.values()):
            thread.join(max(ends - time.monotonic(), 0))

    def _look_until_stopped(self) -> None:
        while not self._stop.is_set():
            try:
                self._look()
            except Error:
                # The rows are safe; a database that is away for a moment comes back.
                logger.warning("Could not look for deliveries.", exc_info=True)
            finally:
                connections.close_all()
            self._stop.wait(self._poll)

    def _look(self) -> None:
        for channel in upkeep.due_channels():
            running = self._draining.get(channel)
            if running is None or not running.is_alive():
                thread = threading.Thread(
                    target=_drain,
                    args=(channel, self._stop),
                    name=f"hitl-{channel}",
                    daemon=True,
                )
                self._draining[channel] = thread
                thread.start()


def deliver_due() -> int:
    """Send what is due now, channel after channel; return how many attempts were made."""
    return sum(deliveries.drain(channel) for channel in upkeep.due_channels())


def _drain(channel: str, stop: threading.Event) -> None:
    try:
        deliveries.drain(channel, stop=stop)
    except Exception:
        # Whatever it was, the lease of the row ends and the next look goes on.
        logger.exception("Could not send what %s is owed.", channel)
    finally:
        connections.close_all()

"""Publishes hints to Celery by the tasks' pinned names, for a bounded time."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from celery import current_app

from hitl_approvals.conf import hitl_settings

logger = logging.getLogger("hitl_approvals")

RUN_TURN = "hitl_approvals.run_turn"
SWEEP = "hitl_approvals.sweep"
DELIVER = "hitl_approvals.deliver"
_MOST_WAITING = 4


class _Slots:
    """How many threads may wait for the broker, for each kind of hint.

    Deliveries have slots of their own: nobody waits for them, so many can come at once,
    and they must not take those of the runs.
    """

    def __init__(self) -> None:
        self.runs = threading.BoundedSemaphore(_MOST_WAITING)
        self.deliveries = threading.BoundedSemaphore(_MOST_WAITING)


_slots = _Slots()


def _forget_the_parents_threads() -> None:
    """Give a forked child slots of its own: the threads that hold these are not in it."""
    global _slots
    _slots = _Slots()


os.register_at_fork(after_in_child=_forget_the_parents_threads)


def wake(turn_id: UUID) -> bool:
    """Announce an owed run, and wait for it at most `PUBLISH_TIMEOUT`."""
    hints = _Hints(RUN_TURN, [str(turn_id)], hitl_settings.celery_queue)
    return hints.publish(_slots.runs, hitl_settings.publish_timeout)


def deliver(channels: Sequence[str]) -> bool:
    """Announce what channels are owed, one message each, without waiting for it.

    Whoever commits has waited for the announcement of a run already, and the outside
    does not notice if it takes until the sweeper comes by.
    """
    hints = _Hints(DELIVER, channels, hitl_settings.webhook_celery_queue)
    return hints.publish(_slots.deliveries, None)


@dataclass(slots=True)
class _Hints:
    """Messages that one thread publishes."""

    task: str
    names: Sequence[str]
    """One message each; it is the only argument."""
    queue: str | None
    failures: list[Exception] = field(default_factory=list)

    def publish(self, slots: threading.BoundedSemaphore, seconds: float | None) -> bool:
        """Publish in a thread of its own and wait so long; None is not at all.

        A broker that accepts connections and never answers would otherwise hold the
        reviewer's request for ever, whatever the transport's own time-outs are.
        """
        if not slots.acquire(blocking=False):
            logger.warning(
                "The broker does not answer; %s waits for the sweeper.", self
            )
            return False
        thread = threading.Thread(
            target=self._send, args=(slots,), name="hitl-publish", daemon=True
        )
        thread.start()
        if seconds is None:
            return True
        thread.join(seconds)
        if thread.is_alive():
            logger.warning("The broker is slow; %s may wait for the sweeper.", self)
        return not thread.is_alive() and not self.failures

    def _send(self, slots: threading.BoundedSemaphore) -> None:
        try:
            for name in self.names:
                current_app.send_task(
                    self.task,
                    args=[name],
                    queue=self.queue,
                    retry=False,
                    ignore_result=True,
                )
        except Exception as error:  # noqa: BLE001  told to whoever waits, and here
            self.failures.append(error)
            logger.warning(
                "The broker refused %s (%s); the sweeper will announce it again.",
                self,
                error,
            )
        finally:
            slots.release()

    def __str__(self) -> str:
        return f"{self.task} {', '.join(self.names)}"

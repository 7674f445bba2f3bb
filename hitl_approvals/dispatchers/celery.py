"""Publishes the hint to Celery by the task's pinned name, for a bounded time."""

from __future__ import annotations

import logging
import os
import threading
from uuid import UUID

from celery import current_app

from hitl_approvals.conf import hitl_settings

logger = logging.getLogger("hitl_approvals")

RUN_TURN = "hitl_approvals.run_turn"
SWEEP = "hitl_approvals.sweep"
_MOST_WAITING = 4
_waiting = threading.BoundedSemaphore(_MOST_WAITING)


def _forget_the_parents_threads() -> None:
    """Give a forked child slots of its own: the threads that hold these are not in it."""
    global _waiting
    _waiting = threading.BoundedSemaphore(_MOST_WAITING)


os.register_at_fork(after_in_child=_forget_the_parents_threads)


def wake(turn_id: UUID) -> bool:
    """Publish in a thread of its own and wait for it at most `PUBLISH_TIMEOUT`.

    A broker that accepts connections and never answers would otherwise hold the
    reviewer's request for ever, whatever the transport's own time-outs are.
    """
    slots = _waiting
    if not slots.acquire(blocking=False):
        logger.warning(
            "The broker does not answer; turn %s waits for the sweeper.", turn_id
        )
        return False
    failures: list[Exception] = []

    def publish() -> None:
        try:
            current_app.send_task(
                RUN_TURN,
                args=[str(turn_id)],
                queue=hitl_settings.celery_queue,
                retry=False,
                ignore_result=True,
            )
        except Exception as error:  # noqa: BLE001  told to the caller below
            failures.append(error)
        finally:
            slots.release()

    thread = threading.Thread(target=publish, name="hitl-publish", daemon=True)
    thread.start()
    thread.join(hitl_settings.publish_timeout)
    if thread.is_alive():
        logger.warning("The broker is slow; turn %s may wait for the sweeper.", turn_id)
    elif failures:
        logger.warning(
            "The broker refused turn %s (%s); the sweeper will announce it again.",
            turn_id,
            failures[0],
        )
    return not thread.is_alive() and not failures

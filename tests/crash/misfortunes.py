"""What befalls the messages between processes: lost, doubled, out of order, redelivered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import redis
from django.conf import settings

from hitl_approvals import tasks
from hitl_approvals.dispatchers.celery import RUN_TURN
from hitl_approvals.enums import TurnStatus
from hitl_approvals.models import AgentTurn, PendingInterrupt
from tests.crash import roles
from tests.crash.site import outside
from tests.crash.site.broker import app

if TYPE_CHECKING:
    from tests.crash.phases import Script


class OutOfOrder(Exception):
    """A thread's turns did not run one after the other."""


def hints_are_flushed(play: Script) -> None:
    """The broker forgets the hint, and the queue's very existence, under a live worker."""
    play.ask_and_run()
    play.approve()
    _flush()
    play.see_through()


def hints_are_doubled(play: Script) -> None:
    """Every hint comes ten times, to two workers at once."""
    play.ask_and_run()
    play.approve(dispatcher="worker")
    _hint(play, [play.turn_id] * 10)
    play.worker()
    play.see_through()
    play.until(lambda: not _queued(), "hints were left lying")


def hints_are_reordered(play: Script) -> None:
    """In a thread, the hints for what comes second come first, and more than once."""
    play.ask(thread_id=f"thread of {play.folder}", dispatcher="worker")
    first = play.turn_id
    play.ask(thread_id=f"thread of {play.folder}", dispatcher="worker")
    second, play.turn_id = play.turn_id, first
    _hint(play, [second, second, first, second])
    play.see_through()

    def asked() -> bool:
        return AgentTurn.objects.get(pk=second).status == TurnStatus.SUSPENDED

    play.until(asked, "the second turn did not get its turn")
    ended = AgentTurn.objects.get(pk=first).finished_at
    row = PendingInterrupt.objects.get(turn=second)
    if ended is None or ended > row.requested_at:
        raise OutOfOrder("The second turn did not wait.")


def tasks_are_redelivered(play: Script) -> None:
    """Redis believes that a task is lost while it runs, and hands it to another."""

    def impatient() -> None:
        app.conf.broker_transport_options |= {
            "visibility_timeout": 1,
            "unacked_restore_interval": 0.3,
            "unacked_restore_throttle": 1,
        }
        # Ours are acknowledged before they run; a site may have its own mind.
        tasks.run_turn.acks_late = True
        settings.HITL_APPROVALS |= {"TIMEOUT": 60}
        outside.slowness = 5

    play.ask_and_run()
    play.approve()
    for number in range(2):
        play.fork(f"slow worker {number}", partial(roles.worker, "celery"), impatient)
    log = play.folder / "log"
    play.until(
        lambda: log.read_text().count("] received") > 1, "it was not redelivered"
    )
    play.see_through()


def many_sweep_at_once(play: Script) -> None:
    """A worker dies, and five sweepers find it at the same time."""
    play.die_in_the_call()
    for number in range(4):
        play.fork(f"sweeper {number}", roles.sweep_on)
    play.see_through()


BEFALL: dict[str, Callable[[Script], None]] = {
    "hints are flushed": hints_are_flushed,
    "hints are doubled": hints_are_doubled,
    "hints are reordered": hints_are_reordered,
    "tasks are redelivered": tasks_are_redelivered,
    "many sweep at once": many_sweep_at_once,
}


def _hint(play: Script, turn_ids: Sequence[Any]) -> None:
    """Publish hints in this order, from a process that then ends."""

    def publish() -> None:
        queue = settings.HITL_APPROVALS["CELERY_QUEUE"]
        for turn_id in turn_ids:
            app.send_task(RUN_TURN, args=[str(turn_id)], queue=queue)

    play.finish(play.fork("publisher", publish))


def _broker() -> redis.Redis:
    return redis.Redis.from_url(settings.CELERY_BROKER_URL)


def _queued() -> int:
    with _broker() as client:
        return int(client.llen(settings.HITL_APPROVALS["CELERY_QUEUE"]))  # type: ignore[arg-type]


def _flush() -> None:
    """Forget what a flushed Redis would, but only what is this lane's."""
    queue = settings.HITL_APPROVALS["CELERY_QUEUE"]
    with _broker() as client:
        client.delete(queue, f"_kombu.binding.{queue}")

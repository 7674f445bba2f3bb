"""Kills the worker twice around one approval, and counts what happened all the same."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from django.core.management import call_command
from django.db import connection

from example_project.database_url import postgresql_from_url
from example_project.demo import pauses
from example_project.demo.client import Client
from example_project.demo.fresh_database import fresh_database
from example_project.demo.people import seed_people
from example_project.demo.processes import Process
from example_project.demo.stage import Stage, free_port, wait_until
from example_project.demo.verdict import STUCK, Verdict
from example_project.shop.models import Refund
from example_project.shop.seeds import seed_orders
from hitl_approvals.models import AgentTurn, InterruptEvent

PROMPT = "Order A-1002 arrived broken. Refund 240.00 EUR."

Say = Callable[[str], None]


class TurnStuckError(RuntimeError):
    """The turn will not come to what is waited for."""


def run_check(say: Say, *, point: str) -> Verdict:
    """Bring up a site of its own, put it through the story and count.

    Args:
        say: Is told each step.
        point: Where the second kill hits, one of `pauses.POINTS`.
    """
    started = time.monotonic()

    def step(text: str) -> None:
        say(f"{time.monotonic() - started:5.1f} s  {text}")

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hitl-demo-"))
        pause = Path(folder, "pause")
        prefix = f"hitl-check-{os.getpid()}:"
        stage = Stage(
            Path(folder),
            free_port(),
            CELERY_KEY_PREFIX=prefix,
            **{pauses.FILE: str(pause), pauses.POINT: point},
            **stack.enter_context(fresh_database(os.environ.get("DATABASE_URL"))),
        )
        broker = stack.enter_context(stage.broker())
        stack.callback(_clear, broker, prefix)
        _point_at(stage)
        stack.callback(connection.close)
        call_command("migrate", verbosity=0, interactive=False)
        seed_orders()
        tokens = seed_people()
        step("A database, a broker and the people are there.")

        story = Story(stage, pause, step)
        with stage.start_web() as web:
            try:
                wait_until(stage.is_up, web)
                story.tell(
                    web,
                    sam=Client(stage.port, tokens["sam"]),
                    rita=Client(stage.port, tokens["rita"]),
                )
            except Exception as error:  # noqa: BLE001  the counts are told all the same
                step(f"FAILED: {type(error).__name__}: {error}")
                say(stage.last_words())
        return Verdict(
            effects=Refund.objects.count(),
            resolved=InterruptEvent.objects.filter(type="resolved").count(),
            kills=story.left_with.count(-signal.SIGKILL),
            seconds=time.monotonic() - started,
            completed=story.completed,
        )


class Story:
    """One refund, asked for, approved and made, by workers that are killed meanwhile."""

    def __init__(self, stage: Stage, pause: Path, say: Say) -> None:
        self._stage = stage
        self._pause = pause
        self._say = say
        self.left_with: list[int] = []
        """What the killed workers left with."""
        self.completed = False

    def tell(self, web: Process, *, sam: Client, rita: Client) -> None:
        """Tell the story from the complaint to the answer.

        Raises:
            ProcessEndedError: A process ended that nobody killed.
            TimeoutError: Something did not happen that has to.
            AnswerError: The site refused something.
            TurnStuckError: The agent's turn stopped for good; the text says why.
        """

        def status() -> str:
            now = str(sam.turn(turn)["status"])
            if now in STUCK:
                # Sam may not read why.
                row = AgentTurn.objects.get(pk=turn)
                raise TurnStuckError(
                    f"The turn is {now}: {row.last_error or row.error}"
                )
            return now

        with self._stage.start_worker() as worker:
            turn = sam.start_turn(PROMPT, key=f"demo-check-{os.getpid()}")
            wait_until(lambda: status() == "suspended", web, worker)
            (interrupt,) = rita.pending(turn)
            self._say("The agent wants to refund; its turn is suspended.")
            self._kill(worker, "while the approval was pending")

        with self._stage.start_worker() as worker:
            self._pause.touch()
            rita.approve(interrupt["id"])
            self._say("The refund is approved.")
            reached = pauses.reached(self._pause)
            wait_until(lambda: reached.exists() and status() == "running", web, worker)
            self._kill(worker, "after it had claimed the turn and before its end")
            self._pause.unlink()

        with self._stage.start_worker() as worker:
            wait_until(lambda: status() == "completed", web, worker)
            self.completed = True
            self._say(f"The turn is completed: {sam.turn(turn)['output']}")

    def _kill(self, worker: Process, when: str) -> None:
        self.left_with.append(worker.kill())
        self._say(f"The worker was killed {when}.")


def _point_at(stage: Stage) -> None:
    """Make this process use the stage's database, the way Django's test runner does."""
    url = stage.environment.get("DATABASE_URL")
    name = postgresql_from_url(url)["NAME"] if url else stage.folder / "db.sqlite3"
    connection.close()
    connection.settings_dict["NAME"] = str(name)


def _clear(broker: str, prefix: str) -> None:
    """Leave nothing in a Redis that was there before."""
    if not broker.startswith(("redis:", "rediss:")):
        return
    from redis import Redis

    with Redis.from_url(broker, socket_timeout=5) as client:
        for key in client.scan_iter(f"{prefix}*"):
            client.delete(key)

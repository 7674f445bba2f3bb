"""`manage.py demo`: the example site for people, or with `--check` without any."""

from __future__ import annotations

import signal
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from example_project.demo import pauses
from example_project.demo.check import run_check
from example_project.demo.processes import ProcessEndedError
from example_project.demo.show import run_demo
from example_project.demo.stage import BrokerMissingError

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED = 130


class Command(BaseCommand):
    """Starts broker, web server, worker and an agent that asks for a refund."""

    help = (
        "Start the example site: a broker, a web server, a Celery worker, reviewers and "
        "an agent that asks for a refund. With --check, kill the worker twice around "
        "the approval of a refund, in a database of its own, and count what happened."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="needs no person")
        parser.add_argument(
            "--kill",
            choices=pauses.POINTS,
            default=pauses.POINTS[0],
            help="where --check kills the worker that makes the refund (%(default)s)",
        )
        parser.add_argument(
            "--port", type=int, help="of the site (8000, or the next that is free)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        # Whatever ends this command, what it started ends with it.
        for number in _ENDING:
            signal.signal(number, _interrupt)
        try:
            if options["check"]:
                self._check(options["kill"])
            else:
                run_demo(self._say, port=options["port"])
        except (BrokerMissingError, ProcessEndedError, TimeoutError) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self._say("Everything that was started here is stopped.")
            if options["check"]:
                sys.exit(_INTERRUPTED)

    def _check(self, point: str) -> None:
        verdict = run_check(self._say, point=point)
        self._say(str(verdict))
        if not verdict.holds:
            sys.exit(1)

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _interrupt(number: int, frame: object) -> None:
    # Once is enough: a second one would interrupt the cleaning up.
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt

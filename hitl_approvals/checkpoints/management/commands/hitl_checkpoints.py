"""`manage.py hitl_checkpoints`: removes what is old and over, for cron."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from hitl_approvals.checkpoints import retention

_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


class Command(BaseCommand):
    """Deletes old threads that are over, in batches, and says how much it was."""

    help = (
        "Remove the checkpoints of threads in which nothing was saved for a while and "
        "that are over. A thread that waits for a person, failed, or has something to "
        "do is left alone, however old it is."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--older-than",
            type=span,
            required=True,
            metavar="30d",
            help="How long nothing was saved: days (d), hours (h) or minutes (m).",
        )
        parser.add_argument(
            "--keep-last",
            action="store_true",
            help="Keep the latest checkpoint of each, so that a conversation can go on.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Only count, delete nothing."
        )
        parser.add_argument(
            "--batch",
            type=int,
            default=retention.BATCH,
            help=f"Threads in one transaction (default {retention.BATCH}).",
        )
        parser.add_argument(
            "--database",
            help="The database; by default the one that checkpoints are written to.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tally = retention.remove_old(
            timezone.now() - options["older_than"],
            keep_last=options["keep_last"],
            dry_run=options["dry_run"],
            using=options["database"],
            batch=options["batch"],
        )
        for kind, count in tally.as_dict().items():
            self.stdout.write(f"{kind} {count}")


def span(text: str) -> timedelta:
    """Read a span such as `30d`.

    Raises:
        ArgumentTypeError: It is none, or has no length.
    """
    match = re.fullmatch(r"(?P<number>[1-9]\d{0,5})(?P<unit>[dhm])", text)
    if match is None:
        raise ArgumentTypeError(f"{text!r} is no span such as 30d, 12h or 45m.")
    return timedelta(**{_UNITS[match["unit"]]: int(match["number"])})

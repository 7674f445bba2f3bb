"""`manage.py hitl_doctor`: whether anything is stuck, and what to do; for monitoring too."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from hitl_approvals import health
from hitl_approvals.management.moments import moment
from hitl_approvals.management.spans import seconds
from hitl_approvals.services import failover


class Command(BaseCommand):
    """Prints a line for each thing that was looked at; or stops what a failover voided."""

    help = (
        "Say in plain words whether anything is stuck or set up wrongly, and what to "
        "do about it. Exits with 0 if all is well, 1 if somebody should look, 2 if turns "
        "do not go on. With --after-failover: stop what would go on without its last "
        "records."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--json", action="store_true", help="Print JSON, for programs."
        )
        parser.add_argument(
            "--max-owed",
            type=seconds,
            default=health.DEFAULT_MAX_OWED,
            metavar="SECONDS",
            help="A run that is owed for longer is a failure (default 300).",
        )
        parser.add_argument(
            "--after-failover",
            action="store_true",
            help=(
                "After a failover to a replica that lagged: stop every turn that would "
                "go on, put in doubt what began, and list what is not on record. Stop "
                "all workers first."
            ),
        )
        parser.add_argument(
            "--since",
            type=moment,
            help="With --after-failover: the moment from which records may be missing.",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="With --after-failover: only list, change nothing.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["after_failover"]:
            self._after_failover(options)
        elif options["since"] or options["dry_run"]:
            raise CommandError("--since and --dry-run belong to --after-failover.")
        else:
            self._examine(options)

    def _examine(self, options: dict[str, Any]) -> None:
        lines = health.examine(max_owed=options["max_owed"])
        level = health.worst(lines)
        if options["json"]:
            found = {"level": level.name, "lines": [line.as_dict() for line in lines]}
            self.stdout.write(json.dumps(found, indent=2))
        else:
            for line in lines:
                self._print(line)
        if level is not health.Level.OK:
            sys.exit(int(level))

    def _print(self, line: health.Line) -> None:
        style = {
            health.Level.OK: self.style.SUCCESS,
            health.Level.WARN: self.style.WARNING,
            health.Level.FAIL: self.style.ERROR,
        }[line.level]
        # Padded before it is colored: colors take no room on the screen.
        self.stdout.write(
            f"{style(f'{line.level.name:<4}')}  {line.name:<10}  {line.text}"
        )
        if line.advice:
            self.stdout.write(f"{'':<18}{line.advice}")

    def _after_failover(self, options: dict[str, Any]) -> None:
        since: datetime | None = options["since"]
        if since is None:
            raise CommandError(
                "--after-failover needs --since: the moment from which records may be "
                "missing, that is the replica's last known lag before the failover."
            )
        if since > timezone.now():
            raise CommandError("--since lies in the future.")
        if options["dry_run"]:
            would = failover.would_go_on().count()
            self._tell(options, "would_stop", would, f"Would stop {would} turns.")
        else:
            self._stop(options, since)
        number = 0
        for unknown in failover.unknowns(since=since):
            number += 1
            self._tell_unknown(options, unknown)
        self._tell(
            options,
            "to_find_out",
            number,
            f"{number} calls for a person to look into; free calls that were lost with "
            "their records, and turns that began since, leave no trace here at all.",
        )
        if number:
            sys.exit(1)

    def _stop(self, options: dict[str, Any], since: datetime) -> None:
        held = 0
        for turn_id in failover.hold_all(since=since):
            held += 1
            if options["json"]:
                self.stdout.write(
                    json.dumps({"what": "stopped", "turn_id": str(turn_id)})
                )
        self._tell(
            options,
            "stopped",
            held,
            f"Stopped {held} turns: they need attention, and nothing runs in them until "
            "somebody retries them.",
        )
        doubted = failover.doubt_all()
        self._tell(
            options,
            "put_in_doubt",
            doubted,
            f"Put {doubted} calls in doubt that began and were not recorded.",
        )

    def _tell(self, options: dict[str, Any], what: str, count: int, text: str) -> None:
        line = json.dumps({"what": what, "count": count}) if options["json"] else text
        self.stdout.write(line)

    def _tell_unknown(self, options: dict[str, Any], unknown: failover.Unknown) -> None:
        if options["json"]:
            self.stdout.write(json.dumps(unknown.as_dict()))
            return
        turn = "" if unknown.turn_id is None else f" of turn {unknown.turn_id}"
        self.stdout.write(
            f"{unknown.what.upper():<10} {unknown.tool} ({unknown.mode}) "
            f"{unknown.subject_id}{turn}: {unknown.text}"
        )

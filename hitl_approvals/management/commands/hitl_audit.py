"""`manage.py hitl_audit`: verifies the audit trail, or writes it out as JSON lines."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from hitl_approvals import auditing
from hitl_approvals.management.moments import moment


class Command(BaseCommand):
    """Prints what `auditing` finds or yields; the exit code says whether all is well."""

    help = (
        "`verify` recomputes every chain of audit events and compares it with the rows; "
        "it exits with 1 if something is not as it was written. `export` writes the "
        "events as JSON lines."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verify = verbs.add_parser(
            "verify", help="Look for what was changed or removed."
        )
        scope = verify.add_mutually_exclusive_group()
        scope.add_argument(
            "--turn", type=UUID, help="Only this turn and its interrupts."
        )
        scope.add_argument("--interrupt", type=UUID, help="Only this interrupt.")
        verify.add_argument(
            "--json",
            action="store_true",
            help="One JSON object a line: the findings, then the summary.",
        )
        export = verbs.add_parser("export", help="Write the events as JSON lines.")
        export.add_argument("--turn", type=UUID, help="Only this turn's events.")
        export.add_argument(
            "--since", type=moment, help="Only events since this ISO moment."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verb"] == "export":
            self._export(options["since"], options["turn"])
        else:
            self._verify(options)

    def _export(self, since: datetime | None, turn_id: UUID | None) -> None:
        unreadable = 0
        for event in auditing.export(since=since, turn_id=turn_id):
            unreadable += "error" in event
            self.stdout.write(_line(event))
        if unreadable:
            self.stderr.write(f"{unreadable} events could not be read.")
            sys.exit(1)

    def _verify(self, options: dict[str, Any]) -> None:
        verification = auditing.Verification(
            turn_id=options["turn"], interrupt_id=options["interrupt"]
        )
        faults = 0
        for finding in verification.findings():
            faults += finding.is_fault
            if options["json"]:
                self.stdout.write(_line(finding.as_dict()))
            elif finding.is_fault or options["verbosity"] > 1:
                self.stdout.write(
                    f"{finding.problem.upper()} {finding.kind} {finding.subject_id}: "
                    f"{finding.text}"
                )
        checked = verification.checked
        if not any(checked.as_dict().values()) and (
            options["turn"] or options["interrupt"]
        ):
            raise CommandError(
                "There is no such row, and no event of one.", returncode=2
            )
        if options["json"]:
            summary = {"checked": checked.as_dict(), "faults": faults, "ok": not faults}
            self.stdout.write(_line(summary))
        else:
            self.stdout.write(_summary(checked, faults))
        if faults:
            sys.exit(1)


def _summary(checked: auditing.Checked, faults: int) -> str:
    gone = (
        f"{checked.gone} subjects have events and no row any more. "
        if checked.gone
        else ""
    )
    return (
        f"Checked {checked.events} events of {checked.interrupts} interrupts and "
        f"{checked.turns} turns. {gone}"
        + (
            f"{faults} things are not as they were written."
            if faults
            else "All is well."
        )
    )


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))

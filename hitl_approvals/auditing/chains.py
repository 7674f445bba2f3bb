"""What one subject's events say, and whether its row agrees. Reads no table."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hitl_approvals import canonical
from hitl_approvals.enums import (
    ASIDE,
    LIVE_TURN,
    EventType,
    InterruptStatus,
    TurnStatus,
)
from hitl_approvals.exceptions import HitlApprovalsError
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from hitl_approvals.models.events import event_hash

UNREADABLE = (
    AttributeError,
    HitlApprovalsError,
    OverflowError,
    TypeError,
    ValueError,
)
"""What columns raise that hold what we never wrote."""


class Problem(StrEnum):
    """What can be wrong with a trail."""

    CHANGED = "changed"
    """An event's content does not give its hash."""
    MISSING = "missing"
    """An event is gone from the beginning or the middle."""
    UNLINKED = "unlinked"
    """An event does not name its predecessor's hash."""
    CUT_OFF = "cut_off"
    """The row counts more events than there are: the last ones are gone."""
    UNCOUNTED = "uncounted"
    """There are more events than the row counts."""
    HEAD = "head"
    """The row does not name the hash of its last event."""
    STATE = "state"
    """The row is not what its last event says."""
    ARGUMENTS = "arguments"
    """Frozen arguments are not the ones that were digested."""
    UNREADABLE = "unreadable"
    """A column holds what was never written by us."""
    GONE = "gone"
    """The subject's row is not there any more. Pruning does that: a note, no fault."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it was written."""

    problem: Problem
    kind: str
    """`interrupt`, `turn`, or `subject` where no row tells."""
    subject_id: str
    text: str
    sequence: int | None = None

    @property
    def is_fault(self) -> bool:
        return self.problem is not Problem.GONE

    def as_dict(self) -> dict[str, Any]:
        return {
            "problem": str(self.problem),
            "fault": self.is_fault,
            "kind": self.kind,
            "subject_id": self.subject_id,
            "sequence": self.sequence,
            "text": self.text,
        }


@dataclass(slots=True)
class Chain:
    """The events of one subject, taken in one by one and never kept."""

    kind: str
    subject_id: str
    count: int = 0
    last: InterruptEvent | None = None
    findings: list[Finding] = field(default_factory=list)
    may_run: str = ""
    """Digest of what the last decision let run."""
    shown: str = ""
    """Digest of what the last decision was about."""

    def take(self, event: InterruptEvent) -> None:
        """Compare the next event with its own hash and with its predecessor."""
        before = self.last
        self.count += 1
        self.last = event
        if not _is_as_written(event):
            self.add(
                Problem.CHANGED,
                f"Event {event.sequence} ({event.type}) was changed: its content does "
                "not give its hash.",
                event.sequence,
            )
        self._follow(before, event)
        if event.type in ASIDE:
            return
        if event.status == InterruptStatus.DECIDED or event.type == EventType.COPIED:
            self.may_run, self.shown = event.digest_run, event.digest_shown
        elif event.status == InterruptStatus.PENDING:
            self.may_run, self.shown = "", ""

    def _follow(self, before: InterruptEvent | None, event: InterruptEvent) -> None:
        due = 0 if before is None else before.sequence + 1
        name = f"Event {event.sequence} ({event.type})"
        if event.sequence < due:
            self.add(Problem.UNCOUNTED, f"{name} is there twice.", event.sequence)
        elif event.sequence > due:
            last = event.sequence - 1
            gone = f"Event {due} is" if due == last else f"Events {due} to {last} are"
            self.add(Problem.MISSING, f"{gone} missing.", due)
        elif event.previous_hash != ("" if before is None else before.hash):
            there = "the one that is there" if before is not None else "none"
            self.add(
                Problem.UNLINKED,
                f"{name} was written after another event than {there}.",
                event.sequence,
            )

    def compare(self, row: PendingInterrupt | AgentTurn) -> None:
        """Compare the row with the chain, once every event was taken in."""
        self._compare_ends(row.events_count, row.events_head)
        if isinstance(row, AgentTurn):
            if not self.findings:
                self._compare_turn(row)
            return
        if self.last is None and not self.findings:
            self.add(Problem.MISSING, "There is no event at all, not even its first.")
        # What is gone or changed would make the row look wrong too.
        last = None if self.findings else self.last
        if last is not None:
            self._compare_interrupt(row, last)
        self._compare_arguments(row, believed=last is not None)

    def _compare_ends(self, counted: int, head: str) -> None:
        """Compare the last event with the one that the row knows."""
        length = 0 if self.last is None else self.last.sequence + 1
        if length < counted:
            there = (
                f"the last one is number {length - 1}" if length else "there is none"
            )
            self.add(
                Problem.CUT_OFF,
                f"The row counts {counted} events and {there}: the end was cut off.",
                length,
            )
        elif length > counted:
            self.add(
                Problem.UNCOUNTED,
                f"There are events up to number {length - 1}; the row counts {counted}.",
                counted,
            )
        elif head != ("" if self.last is None else self.last.hash):
            self.add(
                Problem.HEAD,
                "The row does not name the hash of its last event: one of the two "
                "was replaced.",
                length - 1 if length else None,
            )

    def _compare_interrupt(self, row: PendingInterrupt, last: InterruptEvent) -> None:
        pairs: dict[str, tuple[Any, Any]] = {
            "status": (row.status, last.status),
            "decision": (row.decision or "", last.decision),
            "generation": (row.generation, last.generation),
            "revision": (row.revision, last.revision),
        }
        for name, (found, told) in pairs.items():
            if found != told:
                self.add(
                    Problem.STATE,
                    f"The row's {name} is `{found}`; by event {last.sequence} "
                    f"({last.type}) it is `{told}`.",
                    last.sequence,
                )

    def _compare_turn(self, row: AgentTurn) -> None:
        """A turn's own events tell of its ends; between them it moves without any."""
        last = self.last
        told = TurnStatus.READY if last is None else last.status
        if row.status == told or (told in LIVE_TURN and row.status in LIVE_TURN):
            return
        due = "still open" if told in LIVE_TURN else f"`{told}`"
        by = "without any event" if last is None else f"by event {last.sequence}"
        self.add(
            Problem.STATE,
            f"The row's status is `{row.status}`; {by} the turn is {due}.",
            None if last is None else last.sequence,
        )

    def _compare_arguments(self, row: PendingInterrupt, *, believed: bool) -> None:
        """Compare the arguments with their digests, and those with the decision's."""
        holds = {
            "the proposed arguments": _gives(row.args_text, row.args_digest),
            "the edited arguments": _gives(row.decision_args_text, row.decision_digest),
        }
        if believed:
            holds["the digest of what was shown"] = self.shown in ("", row.args_digest)
            holds["the digest of what may run"] = self.may_run == row.decision_digest
        wrong = [what for what, right in holds.items() if not right]
        if wrong:
            self.add(
                Problem.ARGUMENTS,
                f"Not as they were asked for and decided: {', '.join(wrong)}.",
            )

    def add(self, problem: Problem, text: str, sequence: int | None = None) -> None:
        """Note a finding about this subject."""
        self.findings.append(
            Finding(problem, self.kind, self.subject_id, text, sequence)
        )


def _is_as_written(event: InterruptEvent) -> bool:
    try:
        return event_hash(event) == event.hash
    except UNREADABLE:
        return False


def _gives(text: str | None, digest: str) -> bool:
    """Tell whether a digest is that of a text; there may be neither."""
    if text is None:
        return True
    # Only ASCII is canonical, and only that can be digested.
    return text.isascii() and canonical.digest(text) == digest

"""What of a turn comes before the point at which it is forked. Reads rows, writes none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from hitl_approvals.enums import (
    DecisionType,
    EventType,
    InterruptStatus,
    OutcomeStatus,
    StepStatus,
)
from hitl_approvals.exceptions import PayloadRejected, TransitionNotAllowed
from hitl_approvals.models import AgentTurn, PendingInterrupt, TurnStep
from hitl_approvals.services import doubts, queues, rows

END = "end"
"""Where a turn is forked that never asked anybody anything."""
RECORDED = (StepStatus.SUCCEEDED, StepStatus.FAILED)
FATE_UNKNOWN = (StepStatus.STARTED, StepStatus.UNKNOWN)
NOTHING_RUNS = (DecisionType.REJECT, DecisionType.EXPIRE, DecisionType.RESPOND)


@dataclass(slots=True)
class Past:
    """What a fork takes over from its origin, each list in its order."""

    at: str
    """Id of the step or interrupt, or `end`."""
    kept: list[TurnStep] = field(default_factory=list)
    answered: list[PendingInterrupt] = field(default_factory=list)
    """Copied as they were decided and applied."""
    again: list[PendingInterrupt] = field(default_factory=list)
    """Asked again, pending from the beginning."""
    left_out: list[TurnStep] = field(default_factory=list)
    """Calls whose fate is unknown: not replayed, shown to people."""
    places: dict[UUID, int] = field(default_factory=dict)
    """After how many steps of the origin each interrupt was asked."""

    def place(self, row: PendingInterrupt) -> int:
        """Return after how many of the kept steps an interrupt was asked."""
        return sum(step.position <= self.places[row.pk] for step in self.kept)


def past_of(turn: AgentTurn, at: UUID | str | None) -> Past:
    """Return what comes before a point of a turn.

    Args:
        turn: The origin; its row is held, so that no run moves what is read here.
        at: Id of a step ("after it") or of an interrupt ("pending again"); None is the
            last interrupt, or the end if there was none.

    Raises:
        PayloadRejected: The id is of no step and no interrupt of this turn.
        TransitionNotAllowed: Nothing can be replayed up to there.
    """
    journal = _Journal(turn)
    if at is None:
        row = journal.last_interrupt()
        return journal.until_end() if row is None else journal.until_interrupt(row)
    wanted = str(at)
    for step in journal.steps:
        if str(step.pk) == wanted:
            return journal.until_step(step)
    for row in journal.interrupts:
        if str(row.pk) == wanted:
            return journal.until_interrupt(row)
    if journal.was_before_restart(wanted):
        raise TransitionNotAllowed(
            "This lies before the turn's last restart: nothing of it is replayed any "
            "more. Fork at a later point.",
            turn_id=str(turn.pk),
        )
    raise PayloadRejected(
        "The point is no step and no interrupt of this turn; nothing was stored.",
        errors=[{"loc": "at", "message": "Name a step or an interrupt of the turn."}],
    )


class _Journal:
    """Steps and interrupts of a turn since its last restart."""

    def __init__(self, turn: AgentTurn) -> None:
        self.turn = turn
        self._restarted_after, self._restarted_at = _last_restart(turn)
        self._all_steps = list(
            rows.steps().filter(turn=turn.pk).order_by("position", "generation")
        )
        self._all_interrupts = list(rows.interrupts().filter(turn=turn.pk))
        self.steps = [s for s in self._all_steps if s.position > self._restarted_after]
        self._steps_of: dict[UUID, list[TurnStep]] = {}
        for step in self.steps:
            if step.interrupt_id is not None:
                self._steps_of.setdefault(step.interrupt_id, []).append(step)
        own = [row for row in self._all_interrupts if self._is_since_restart(row)]
        self._first_asked: dict[Any, datetime] = {}
        for row in own:
            key = _batch(row)
            before = self._first_asked.get(key, row.requested_at)
            self._first_asked[key] = min(before, row.requested_at)
        self.interrupts = sorted(own, key=self._order)

    def was_before_restart(self, wanted: str) -> bool:
        """Tell whether an id is of this turn, and was left behind by a restart."""
        every: Iterable[Any] = (*self._all_steps, *self._all_interrupts)
        return wanted in {str(one.pk) for one in every}

    def last_interrupt(self) -> PendingInterrupt | None:
        """Return the interrupt that was asked last, as it was asked last."""
        own = [row for row in self.interrupts if not _was_replaced(row)]
        return own[-1] if own else None

    def until_end(self) -> Past:
        """Return all that is on record."""
        last = self.steps[-1].position if self.steps else 0
        return self._past(END, last, self.interrupts)

    def until_step(self, step: TurnStep) -> Past:
        """Return what is on record up to a step, itself included.

        Raises:
            TransitionNotAllowed: It has no result that could be replayed.
        """
        if step.status not in RECORDED:
            raise TransitionNotAllowed(
                f"This step is {step.get_status_display()}: there is no result to go on "
                "from. Fork at an earlier step, or at its interrupt.",
                step_id=str(step.pk),
                status=step.status,
            )
        own = next((r for r in self.interrupts if r.pk == step.interrupt_id), None)

        def is_before(row: PendingInterrupt) -> bool:
            if own is not None and _same_batch(row, own):
                return row.position <= own.position
            return self._place(row) < step.position

        before = [row for row in self.interrupts if is_before(row)]
        return self._past(str(step.pk), step.position, before)

    def until_interrupt(self, row: PendingInterrupt) -> Past:
        """Return what is on record up to an interrupt, which is asked again.

        Raises:
            TransitionNotAllowed: Another one was asked in its place.
        """
        if _was_replaced(row):
            raise TransitionNotAllowed(
                "Another request took the place of this one; fork at that.",
                interrupt_id=str(row.pk),
                superseded_by=str(row.superseded_by_id),
            )
        before = self.interrupts[: self.interrupts.index(row)]
        batch = [one for one in self.interrupts if _same_batch(one, row)]
        return self._past(str(row.pk), self._place(row), before, row, batch)

    def _past(
        self,
        at: str,
        cut: int,
        before: list[PendingInterrupt],
        point: PendingInterrupt | None = None,
        batch: Iterable[PendingInterrupt] = (),
    ) -> Past:
        past = Past(at, places={row.pk: self._place(row) for row in self.interrupts})
        applied = {row.pk for row in before}
        batched = {row.pk for row in batch}
        for step in self.steps:
            asked = step.interrupt_id
            inside = asked in applied if asked in batched else step.position <= cut
            if inside and step.status in RECORDED:
                past.kept.append(step)
            elif step.status in FATE_UNKNOWN and (inside or asked in batched):
                past.left_out.append(step)
        kept = {(step.interrupt_id, step.generation) for step in past.kept}
        unknown = {step.interrupt_id for step in past.left_out}
        for row in self.interrupts:
            if _was_replaced(row):
                continue
            if (row.pk, row.generation) in kept or (
                row.pk in applied and _is_applied_without_running(row)
            ):
                past.answered.append(row)
            elif row is point or row.pk in batched or row.pk in unknown:
                past.again.append(row)
        self._add_what_was_replaced(past)
        self._ask_about_free_calls(past)
        return past

    def _add_what_was_replaced(self, past: Past) -> None:
        """Keep what led to a later request: the replay finds that through it."""
        wanted = {row.pk for row in (*past.answered, *past.again)}
        for row in reversed(self.interrupts):
            if _was_replaced(row) and row.superseded_by_id in wanted:
                past.answered.insert(0, row)
                wanted.add(row.pk)

    def _ask_about_free_calls(self, past: Past) -> None:
        """Let a person decide on calls that began without one and have no row yet."""
        free = [step for step in past.left_out if step.interrupt_id is None]
        known = queues.known([]) if free else set()
        for step in free:
            step.turn = self.turn
            row = doubts.born_in_doubt(step, known)
            past.places[row.pk] = row.after_step
            past.again.append(row)

    def _is_since_restart(self, row: PendingInterrupt) -> bool:
        if not self._restarted_at or row.pk in self._steps_of:
            return True
        if row.after_step != self._restarted_after:
            return row.after_step > self._restarted_after
        return row.requested_at >= self._restarted_at

    def _place(self, row: PendingInterrupt) -> int:
        """Return after how many steps it was asked.

        A call that nobody had to approve gets its row only when it is in doubt.
        """
        own = [step.position - 1 for step in self._steps_of.get(row.pk, ())]
        return min([row.after_step, *own])

    def _order(self, row: PendingInterrupt) -> tuple[Any, ...]:
        """Sort batches by when they were asked, and a batch as the model asked it."""
        first = self._first_asked[_batch(row)]
        return (self._place(row), first, row.position, row.requested_at, str(row.pk))


def _last_restart(turn: AgentTurn) -> tuple[int, datetime | None]:
    event = (
        rows.events()
        .filter(subject_id=turn.pk, type=EventType.TURN_RESTARTED)
        .order_by("sequence")
        .last()
    )
    if event is None:
        return 0, None
    return int((event.detail or {}).get("after_step", 0)), event.at


def _was_replaced(row: PendingInterrupt) -> bool:
    return row.outcome_status == OutcomeStatus.SUPERSEDED


def _is_applied_without_running(row: PendingInterrupt) -> bool:
    """Tell whether the agent was told the answer, and nothing ran for it."""
    if row.outcome_status == OutcomeStatus.GIVEN_UP:
        return True
    return row.status == InterruptStatus.RESOLVED and row.decision in NOTHING_RUNS


def _batch(row: PendingInterrupt) -> Any:
    """Return what is the same for the calls of one batch; a question is asked alone."""
    context = row.context or {}
    trip = context.get("trip")
    if trip is None:
        return row.pk
    return (context.get("metadata") or {}).get("node"), trip


def _same_batch(one: PendingInterrupt, other: PendingInterrupt) -> bool:
    return bool(_batch(one) == _batch(other))

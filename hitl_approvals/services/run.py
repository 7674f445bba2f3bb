"""Run: what one claimed execution of a turn knows, and its fenced writes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet

from hitl_approvals import canonical
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import (
    EventType,
    InterruptStatus,
    OutcomeStatus,
    StepKind,
    StepStatus,
    TurnStatus,
)
from hitl_approvals.exceptions import LeaseLost
from hitl_approvals.models import (
    AgentTurn,
    DbNow,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
    db_now_plus,
)
from hitl_approvals.services import rows
from hitl_approvals.services.clock import DbClock
from hitl_approvals.services.events import SYSTEM, head, interrupt_event
from hitl_approvals.statements import Condition


@dataclass(slots=True)
class Resolution:
    """An interrupt that nothing runs for, to be resolved in the next fenced write."""

    interrupt: PendingInterrupt
    outcome: OutcomeStatus
    digest_run: str = ""
    result: Any = None


@dataclass(slots=True)
class Run:
    """One claim of one turn: its fence, its journal and what is not yet written."""

    turn: AgentTurn
    fence: int
    clock: DbClock
    steps: dict[tuple[str, int], TurnStep] = field(default_factory=dict)
    interrupts: dict[str, PendingInterrupt] = field(default_factory=dict)
    buffer: list[TurnStep] = field(default_factory=list)
    resolutions: list[Resolution] = field(default_factory=list)
    lost: threading.Event = field(default_factory=threading.Event)
    resumed: bool = False
    node: str | None = None
    """The node of a graph that is under way: a part of every key made meanwhile."""

    def next_position(self) -> int:
        """Return the place of the next step in the order of the turn."""
        return len(self.steps) + len(self.buffer) + 1

    def key(self, *parts: Any) -> str:
        """Return the key of a step or interrupt of this turn since its last restart."""
        if self.node is not None:
            parts = ("node", self.node, *parts)
        return turn_key(self.turn, *parts)

    def metadata(self) -> dict[str, Any]:
        """Return what an interrupt keeps of where in its turn it was asked."""
        if self.node is None:
            return {}
        since = {"restarts": self.turn.restarts} if self.turn.restarts else {}
        return {"node": self.node, **since}

    def check_lease(self) -> None:
        """Raise if the heartbeat found that the turn belongs to somebody else.

        Raises:
            LeaseLost: Nothing more may start in this run.
        """
        if self.lost.is_set():
            raise LeaseLost

    def journal(self, key: str, kind: StepKind, name: str, **values: Any) -> TurnStep:
        """Add a pure step; it is written with the next fenced write."""
        step = TurnStep(
            turn=self.turn,
            key=key,
            position=self.next_position(),
            kind=kind,
            name=name[:128],
            status=values.pop("status", StepStatus.SUCCEEDED),
            fence=self.fence,
            **values,
        )
        self.buffer.append(step)
        return step

    def resolve_later(
        self,
        interrupt: PendingInterrupt,
        outcome: OutcomeStatus,
        digest_run: str = "",
        result: Any = None,
    ) -> None:
        """Resolve a refusal, an expiry or an answer in the next fenced write."""
        if all(one.interrupt.pk != interrupt.pk for one in self.resolutions):
            self.resolutions.append(Resolution(interrupt, outcome, digest_run, result))


def turn_key(turn: AgentTurn, *parts: Any) -> str:
    """Return the key of a step or interrupt of a turn since its last restart."""
    if turn.restarts:
        return canonical.key_digest("restart", turn.restarts, *parts)
    return canonical.key_digest(*parts)


def _by_position(steps: QuerySet[TurnStep]) -> QuerySet[TurnStep]:
    return steps.order_by("position")


def _as_asked(interrupts: QuerySet[PendingInterrupt]) -> QuerySet[PendingInterrupt]:
    return interrupts.order_by("position", "pk")


def load(run: Run) -> None:
    """Read the journal and the interrupts of the turn."""
    run.steps = {
        (step.key, step.generation): step
        for step in rows.where(TurnStep, turn=run.turn.pk).read(_by_position)
    }
    run.interrupts = {
        row.dedupe_key: row
        for row in rows.where(PendingInterrupt, turn=run.turn.pk).read(_as_asked)
    }
    by_id = {row.pk: row for row in run.interrupts.values()}
    for step in run.steps.values():
        if step.interrupt_id is not None:
            # One object a row: a change made through either is seen by both.
            step.interrupt = by_id.get(step.interrupt_id)


def fenced(run: Run, *conditions: Condition, **changes: Any) -> None:
    """Write the turn under this run's fence; without changes, extend the lease.

    Begins every transaction of a run: it takes the turn's row first.

    Raises:
        LeaseLost: The turn is not this run's any more, or a condition does not hold.
    """
    run.check_lease()
    own = rows.where(
        AgentTurn,
        *conditions,
        pk=run.turn.pk,
        status=TurnStatus.RUNNING,
        fence=run.fence,
    )
    changed = own.update(
        **(changes or {"lease_until": db_now_plus(hitl_settings.lease)})
    )
    if changed != 1:
        raise LeaseLost


def flush(run: Run, *more: TurnStep) -> list[InterruptEvent]:
    """Write what waits, inside the caller's fenced transaction.

    Returns:
        The events of the resolutions, for the caller to insert with its own.

    Raises:
        LeaseLost: A row that only this run may move has moved.
    """
    in_order = sorted(run.resolutions, key=lambda one: one.interrupt.pk)
    written = [_resolve(run, one) for one in in_order]
    new = [*run.buffer, *more]
    if new:
        rows.insert(new)
    return written


def flushed(run: Run, *more: TurnStep) -> None:
    """Note, after the commit, that the buffer stands in the database."""
    for step in [*run.buffer, *more]:
        run.steps[(step.key, step.generation)] = step
    run.buffer = []
    for one in run.resolutions:
        one.interrupt.status = InterruptStatus.RESOLVED
    run.resolutions = []


def _resolve(run: Run, one: Resolution) -> InterruptEvent:
    event = resolve(
        run, one.interrupt, one.outcome, digest_run=one.digest_run, result=one.result
    )
    if event is None:
        raise LeaseLost
    return event


def resolve(
    run: Run,
    row: PendingInterrupt,
    outcome: OutcomeStatus,
    *,
    digest_run: str = "",
    result: Any = None,
) -> InterruptEvent | None:
    """Move `decided → resolved`, inside the caller's transaction.

    Events that move nothing, such as a late result, may have been added since the row
    was read; the chain is then continued from where it is.

    Returns:
        The event, for the caller to insert; None if the row has moved on.
    """
    seen: PendingInterrupt | None = row
    while seen is not None:
        event = interrupt_event(
            seen,
            EventType.RESOLVED,
            actor=SYSTEM,
            at=run.clock.now(),
            status=InterruptStatus.RESOLVED,
            digest_run=digest_run,
            detail={"outcome": str(outcome), "fence": run.fence},
        )
        standing: dict[str, Any] = {
            "pk": row.pk,
            "status": InterruptStatus.DECIDED,
            "generation": row.generation,
        }
        moved = rows.where(
            PendingInterrupt, **standing, events_count=seen.events_count
        ).update(
            status=InterruptStatus.RESOLVED,
            resolved_at=DbNow(),
            outcome_status=outcome,
            outcome=result,
            **head(event),
        )
        if moved:
            return event
        longer = rows.interrupts().filter(**standing)
        seen = longer.exclude(events_count=seen.events_count).first()
    return None

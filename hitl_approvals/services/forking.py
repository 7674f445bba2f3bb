"""fork(): a new turn that starts from a recorded point of another."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import F

from hitl_approvals import canonical, permissions
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import (
    EventType,
    InterruptKind,
    InterruptStatus,
    OutcomeStatus,
    StepStatus,
)
from hitl_approvals.exceptions import TransitionNotAllowed
from hitl_approvals.models import (
    AgentTurn,
    DbNow,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
    db_now_plus,
)
from hitl_approvals.models.ids import new_id
from hitl_approvals.registry import registry
from hitl_approvals.services import rows, starting
from hitl_approvals.services.control import read_turn
from hitl_approvals.services.events import (
    actor_of,
    head,
    interrupt_event,
    turn_event,
)
from hitl_approvals.services.fork_points import Past, past_of
from hitl_approvals.services.recording import record_events
from hitl_approvals.services.reopening import NOTHING_DECIDED
from hitl_approvals.services.requests import dedupe_key
from hitl_approvals.services.transactions import run_atomic
from hitl_approvals.types import ActorInfo, Person

REPLAYED_KINDS = ("function", "graph", "request")
"""Agents whose turns are made again from their journal; others keep a state of theirs."""
MOST_SHOWN = 100
"""Calls of unknown fate that the fork's first event names."""
NEVER_COPIED = {
    "id",
    "turn",
    "dedupe_key",
    "thread_id",
    "args",
    "after_step",
    "context",
    "superseded_by",
    "decision_key",
    "decision_body",
    "assignee",
    "claim_until",
    "execute_by",
    "events_head",
    "events_count",
}
"""Columns of an interrupt that are the copy's own."""
UNANSWERED: dict[str, Any] = {
    **NOTHING_DECIDED,
    "status": InterruptStatus.PENDING,
    "revision": 1,
    "generation": 1,
    "outcome_status": "",
    "outcome": None,
    "resolved_at": None,
}
"""What makes a copy of an interrupt one that nobody has decided."""


def fork(
    turn_id: UUID | str,
    *,
    at: UUID | str | None = None,
    by: Person | None = None,
    via: str = "python",
    thread_id: str | None = None,
    key: str | None = None,
) -> AgentTurn:
    """Start a new turn from a recorded point of another, whatever became of that one.

    Recorded steps up to the point are copied and replayed, nothing of them runs again.
    What was asked at the point is pending again; what comes after it runs anew, and
    gated calls ask again. Joins the caller's transaction.

    Args:
        turn_id: The origin.
        at: Id of a step ("after it") or of an interrupt ("pending again"). None is the
            turn's last interrupt, or its end if it never asked.
        by: Who forks; None is trusted code.
        via: The door, for the audit trail.
        thread_id: The conversation of the new turn; None makes it its own.
        key: Idempotency key: a second fork with it finds the first one's turn.

    Raises:
        TurnNotFound: No such turn, or it may not be seen.
        ReviewerNotAllowed: The right is missing.
        PayloadRejected: The point is not one of this turn, or the thread's name cannot
            be stored.
        TransitionNotAllowed: Nothing can be replayed up to there.
        KeyReused: The key started another turn.
        ThreadBusy: `THREAD_POLICY` is `refuse` and the thread has an open turn.
    """
    turn, _made = fork_or_find(
        turn_id, at=at, by=by, via=via, thread_id=thread_id, key=key
    )
    return turn


def fork_or_find(
    turn_id: UUID | str,
    *,
    at: UUID | str | None,
    by: Person | None,
    via: str,
    thread_id: str | None,
    key: str | None,
) -> tuple[AgentTurn, bool]:
    """Do as `fork`, and tell whether the turn was made now.

    Raises:
        HitlApprovalsError: As `fork` does.
    """
    seen = read_turn(turn_id)
    permissions.require_fork(by, seen)
    _require_replayed(seen)
    actor = actor_of(by, via)
    start_key = None if key is None else canonical.key_digest("fork", key)
    asked = [str(seen.pk), None if at is None else str(at), thread_id, actor.label]
    start_digest = canonical.digest(canonical.dumps(asked))
    found = starting.started_with(start_key, start_digest)
    if found is not None:
        return found, False

    def work() -> tuple[AgentTurn, bool]:
        # Takes the origin's row first: what a run records of it waits until we are done.
        rows.turns().filter(pk=seen.pk).update(hints=F("hints"))
        turn = AgentTurn(
            agent=seen.agent,
            agent_version=seen.agent_version,
            execute_options=seen.execute_options,
            start_key=start_key,
            start_digest=start_digest,
            max_attempts=hitl_settings.max_attempts,
            requested_by_id=seen.requested_by_id,
            requested_by_label=seen.requested_by_label,
        )
        starting.enter_thread(turn, thread_id)
        origin: Any = rows.turns().annotate(db_now=DbNow()).get(pk=seen.pk)
        past = past_of(origin, at)
        turn.parent, turn.forked_at = origin, past.at
        turn.input, turn.state = origin.input, origin.state
        turn.restarts = origin.restarts
        return _Fork(origin, turn, past, actor, origin.db_now).write()

    return run_atomic(work)


def _require_replayed(turn: AgentTurn) -> None:
    """Refuse turns whose agent does not make them again from their journal.

    Raises:
        TransitionNotAllowed: It keeps a state of its own, which nobody can take back.
    """
    definition = registry.agents.get(turn.agent)
    kind = None if definition is None else definition.kind
    if kind is None and isinstance(turn.state, dict):
        # This process does not know the agent; what its adapter keeps names the kind.
        kind = turn.state.get("framework")
    if kind is not None and kind not in REPLAYED_KINDS:
        raise TransitionNotAllowed(
            f"Agent `{turn.agent}` is of kind {kind!r}, whose turns cannot be forked: "
            "only function and graph agents are replayed from their record.",
            turn_id=str(turn.pk),
        )


class _Fork:
    """The rows and events of one fork."""

    def __init__(
        self,
        origin: AgentTurn,
        turn: AgentTurn,
        past: Past,
        actor: ActorInfo,
        at: datetime,
    ) -> None:
        self.origin = origin
        self.turn = turn
        self.past = past
        self.actor = actor
        self.at = at
        self.events: list[InterruptEvent] = []
        self.new_ids = {row.pk: new_id() for row in (*past.answered, *past.again)}
        self.unknown = {step.interrupt_id for step in past.left_out}

    def write(self) -> tuple[AgentTurn, bool]:
        """Insert the turn with all that it takes over.

        Raises:
            TransitionNotAllowed: The origin moved on meanwhile.
        """
        turn = self.turn
        # What took the place of another comes before it: MariaDB compares at once.
        interrupts = [
            *map(self._ask_again, self.past.again),
            *map(self._copy, reversed(self.past.answered)),
        ]
        if self.past.again:
            starting.wait_for(turn, len(self.past.again))
        else:
            starting.owe(turn)
        first = self._first_event()
        turn.events_head, turn.events_count = first.hash, 1
        turn, made = starting.insert(turn)
        if not made:
            return turn, False
        rows.interrupts().bulk_create(interrupts)
        rows.steps().bulk_create(self._steps())
        told = turn_event(
            self.origin,
            EventType.TURN_FORKED,
            actor=self.actor,
            at=self.at,
            status=self.origin.status,
            detail={"fork": str(turn.pk), "at": self.past.at},
        )
        held = rows.turns().filter(
            pk=self.origin.pk, events_count=self.origin.events_count
        )
        if held.update(**head(told)) != 1:
            raise TransitionNotAllowed(
                "The turn moved on just now; look at it again.",
                turn_id=str(self.origin.pk),
            )
        record_events([told, first, *self.events])
        return rows.turns().get(pk=turn.pk), True

    def _first_event(self) -> InterruptEvent:
        shown = self.past.left_out[:MOST_SHOWN]
        return turn_event(
            self.turn,
            EventType.TURN_BEGUN_AS_FORK,
            actor=self.actor,
            at=self.at,
            status=self.turn.status,
            detail={
                "origin": str(self.origin.pk),
                "at": self.past.at,
                "left_out": [_shown(step) for step in shown],
                "left_out_count": len(self.past.left_out),
            },
        )

    def _steps(self) -> list[TurnStep]:
        """Copy the journal. Without keys for the other side: none of it is sent again."""
        return [
            TurnStep(
                turn=self.turn,
                key=step.key,
                generation=step.generation,
                position=position,
                kind=step.kind,
                name=step.name,
                args_text=step.args_text,
                args_digest=step.args_digest,
                status=step.status,
                mode=step.mode,
                result=step.result,
                error=step.error,
                interrupt_id=self._new(step.interrupt_id),
                started_at=step.started_at,
                finished_at=step.finished_at,
            )
            for position, step in enumerate(self.past.kept, start=1)
        ]

    def _copy(self, row: PendingInterrupt) -> PendingInterrupt:
        """Copy what was decided and applied, as it was: the replay meets it again."""
        copy = self._made_from(row, {})
        # On a column that lists read too: nothing ran here, and nobody decided here.
        copy.policy = {**copy.policy, "taken_over": True}
        if copy.status != InterruptStatus.CANCELLED:
            copy.status = InterruptStatus.RESOLVED
            copy.resolved_at = row.resolved_at or DbNow()
            copy.outcome_status = row.outcome_status or self._outcome(row)
        self._tell(
            copy,
            EventType.COPIED,
            {
                "origin": str(row.pk),
                "decided_by": row.decided_by_label,
                "outcome": copy.outcome_status,
            },
        )
        return copy

    def _outcome(self, row: PendingInterrupt) -> str:
        last = [step for step in self.past.kept if step.interrupt_id == row.pk][-1]
        failed = last.status == StepStatus.FAILED
        return OutcomeStatus.FAILED if failed else OutcomeStatus.SUCCEEDED

    def _ask_again(self, row: PendingInterrupt) -> PendingInterrupt:
        """Copy what was asked, without the answer: pending for as long as any other."""
        copy = self._made_from(row, UNANSWERED)
        declared = (row.policy or {}).get("expires_in")
        wait = hitl_settings.expires_in if declared is None else _seconds(declared)
        copy.expires_at = None if wait is None else db_now_plus(wait)
        copy.requested_at = DbNow()
        copy.policy = {k: v for k, v in copy.policy.items() if k != "taken_over"}
        if row.pk in self.unknown or row._state.adding:  # noqa: SLF001  Django's own
            copy.context["forked_from"]["fate_unknown"] = True
            copy.policy = {
                **copy.policy,
                "gated": True,
                "why": "in the turn that was forked this call began, and whether it "
                "happened is not known",
            }
        self._tell(
            copy,
            EventType.RAISED,
            {
                "tool": copy.tool_name,
                "queue": copy.queue_id,
                "forked_from": str(row.pk),
            },
        )
        return copy

    def _made_from(
        self, row: PendingInterrupt, changes: dict[str, Any]
    ) -> PendingInterrupt:
        kept = {
            field.attname: getattr(row, field.attname)
            for field in PendingInterrupt._meta.concrete_fields  # noqa: SLF001
            if field.name not in NEVER_COPIED
        }
        came_from = {"turn": str(self.origin.pk), "interrupt": str(row.pk)}
        return PendingInterrupt(
            **{
                **kept,
                "id": self.new_ids[row.pk],
                "turn": self.turn,
                "dedupe_key": dedupe_key(
                    self.turn.pk, InterruptKind(row.kind), row.call_key
                ),
                "thread_id": self.turn.thread_id,
                "args": canonical.filterable(canonical.stored(row.args_text)),
                "after_step": self.past.place(row),
                "context": {**(row.context or {}), "forked_from": came_from},
                "superseded_by_id": self._new(row.superseded_by_id),
                **changes,
            }
        )

    def _new(self, old: UUID | None) -> UUID | None:
        return None if old is None else self.new_ids.get(old)

    def _tell(self, row: PendingInterrupt, type_: EventType, detail: Any) -> None:
        event = interrupt_event(
            row,
            type_,
            actor=self.actor,
            at=self.at,
            status=row.status,
            digest_run=row.decision_digest,
            detail=detail,
        )
        row.events_head, row.events_count = event.hash, 1
        self.events.append(event)


def _shown(step: TurnStep) -> dict[str, Any]:
    return {
        "step": str(step.pk),
        "name": step.name,
        "status": str(step.status),
        "position": step.position,
    }


def _seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


__all__ = ["fork"]

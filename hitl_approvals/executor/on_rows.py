"""A graph on the engine's rows: turns, steps, and interrupts in the review queue."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from hitl_approvals import canonical, engine
from hitl_approvals.agents.recording import copied
from hitl_approvals.decisions import Approve, Edit, Reject, Respond
from hitl_approvals.enums import Door, InterruptKind, InterruptStatus, TurnStatus
from hitl_approvals.exceptions import (
    InterruptNotFound,
    TransitionNotAllowed,
    TurnNotFound,
)
from hitl_approvals.executor.outcome import NO_VALUE, ExecutionResult
from hitl_approvals.executor.plain_moves import missing_value
from hitl_approvals.models import AgentTurn, PendingInterrupt
from hitl_approvals.services import decide, fork, rows
from hitl_approvals.services.hints import unannounced
from hitl_approvals.services.transactions import refuse_inside_transaction
from hitl_approvals.stores.checkpoints import Checkpoint
from hitl_approvals.stores.django_checkpoints import DjangoCheckpointStore, payload_of
from hitl_approvals.types import Person

DECISIONS = (Approve, Edit, Reject, Respond)
WAITING = (InterruptStatus.PENDING, InterruptStatus.IN_DOUBT)


class RowsExecution:
    """Runs a graph that is registered as an agent."""

    def __init__(self, agent: str) -> None:
        self._agent = agent

    def run(self, given: Any, thread_id: str | None, **options: Any) -> ExecutionResult:
        """Start a turn and run it here, to its first pause or its end."""
        return told(
            engine.start_turn(
                self._agent, given, thread_id=thread_id, run=True, **options
            )
        )

    def resume(
        self,
        thread_id: str,
        value: Any,
        interrupt_id: str | None,
        *,
        by: Person | None = None,
        via: str = Door.PYTHON,
    ) -> ExecutionResult:
        """Decide what the thread waits for, and run it here."""
        refuse_inside_transaction("DurableExecutor.resume()")
        turn_id = newest_turn(self._agent, thread_id).pk
        if value is not NO_VALUE:
            row = _asked(self._agent, thread_id, interrupt_id)
            # The run is made here: a worker that is told of it would only come first.
            with unannounced():
                receipt = decide(row.pk, _decision(row, value), by=by, via=via)
            turn_id = receipt.turn_id or turn_id
        elif rows.turns().filter(pk=turn_id, undecided__gt=0).exists():
            raise missing_value(thread_id)
        engine.run_turn(turn_id)
        return told(rows.turns().get(pk=turn_id))

    def fork(
        self,
        thread_id: str,
        checkpoint_id: str | None,
        *,
        by: Person | None = None,
        via: str = Door.PYTHON,
    ) -> str:
        """Start a new thread from a checkpoint; return its id."""
        if checkpoint_id is None:
            turn = newest_turn(self._agent, thread_id)
        else:
            turn = _turn_with(self._agent, thread_id, checkpoint_id)
        return fork(turn.pk, at=checkpoint_id, by=by, via=via).thread_id

    def list_checkpoints(self, thread_id: str) -> list[Checkpoint]:
        """Return every pause and every finished node of a thread, oldest first."""
        return DjangoCheckpointStore(self._agent).list(thread_id)

    def result(self, thread_id: str) -> ExecutionResult:
        """Return where a thread stands, whoever ran it last."""
        return told(newest_turn(self._agent, thread_id))


def newest_turn(agent: str, thread_id: str) -> AgentTurn:
    """Return the turn of a thread that runs or waits, else the last that did.

    Raises:
        TurnNotFound: The graph has no such thread.
    """
    turns = rows.turns().filter(
        thread_key=canonical.key_digest("thread", thread_id), agent=agent
    )
    ordered = turns.order_by("-created_at", "-pk")
    found = ordered.filter(undecided__gt=0).first() or ordered.first()
    if found is None:
        raise TurnNotFound(f"Graph `{agent}` has no thread {thread_id!r}.")
    return found


def _asked(agent: str, thread_id: str, interrupt_id: str | None) -> PendingInterrupt:
    """Return the interrupt to decide; where none waits, the last that was decided.

    `services.decide` then says who decided that, and when.

    Raises:
        InterruptNotFound: The thread has no such interrupt.
        TransitionNotAllowed: The thread never asked anything.
    """
    own = rows.interrupts().filter(
        turn__thread_key=canonical.key_digest("thread", thread_id), turn__agent=agent
    )
    if interrupt_id is not None:
        known_id = _uuid(interrupt_id)
        found = None if known_id is None else own.filter(pk=known_id).first()
        if found is None:
            raise InterruptNotFound(
                f"Thread {thread_id!r} has no interrupt {interrupt_id!r}."
            )
        return found
    found = _waiting(own).first() or own.order_by("-decided_at", "-pk").first()
    if found is None:
        turn = newest_turn(agent, thread_id)
        raise TransitionNotAllowed(
            f"Nothing waits for an answer in thread {thread_id!r}: its turn is "
            f"{TurnStatus(turn.status).label}.",
            turn_id=str(turn.pk),
            status=turn.status,
        )
    return found


def _waiting(interrupts: QuerySet[PendingInterrupt]) -> QuerySet[PendingInterrupt]:
    """Return what people have to decide or settle, in the order of the asking."""
    waiting = interrupts.filter(turn__undecided__gt=0, status__in=WAITING)
    # `pending` comes before `in_doubt`, which cannot be decided.
    return waiting.order_by("-status", "after_step", "position", "pk")


def _turn_with(agent: str, thread_id: str, checkpoint_id: str) -> AgentTurn:
    """Return the turn that a checkpoint is of.

    Raises:
        InterruptNotFound: The thread has no such checkpoint.
    """
    known_id = _uuid(checkpoint_id)
    key = canonical.key_digest("thread", thread_id)
    own = rows.turns().filter(thread_key=key, agent=agent)
    asked = own.filter(interrupts=known_id).first() if known_id else None
    found = asked or (own.filter(steps=known_id).first() if known_id else None)
    if found is None:
        raise InterruptNotFound(
            f"Thread {thread_id!r} has no checkpoint {checkpoint_id!r}."
        )
    return found


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(str(text))
    except ValueError:
        return None


def _decision(row: PendingInterrupt, value: Any) -> Any:
    """Return what `resume` was given as a decision: a question takes any JSON."""
    if row.kind != InterruptKind.QUESTION or isinstance(value, DECISIONS):
        return value
    return Respond(value)


def told(turn: AgentTurn) -> ExecutionResult:
    """Return where a turn stands, as the caller of an executor is told."""
    if turn.status == TurnStatus.COMPLETED:
        return ExecutionResult(turn.thread_id, turn.status, output=copied(turn.output))
    if turn.status == TurnStatus.SUSPENDED:
        row = _waiting(rows.interrupts().filter(turn=turn.pk)).first()
        if row is not None:
            return ExecutionResult(
                thread_id=turn.thread_id,
                status=turn.status,
                interrupted=True,
                interrupt_payload=copied(payload_of(row)),
                interrupt_id=str(row.pk),
                waiting=turn.undecided,
                error=_doubt(row),
            )
        # Somebody decided between the two reads.
        turn = rows.turns().get(pk=turn.pk)
    return ExecutionResult(turn.thread_id, turn.status, error=_why(turn))


def _doubt(row: PendingInterrupt) -> str:
    if row.status != InterruptStatus.IN_DOUBT:
        return ""
    return (
        f"Whether `{row.tool_name}` happened is not known. Settle it in the review queue "
        "or with services.settle; it cannot be answered."
    )


def _why(turn: AgentTurn) -> str:
    """Say why a thread has neither an output nor a question."""
    if turn.blocked:
        return (
            "Another run of this thread is not over; this one waits for it, and a "
            "worker performs it then."
        )
    if turn.status == TurnStatus.RUNNING:
        return (
            "A worker runs this thread now; result(thread_id) tells what comes of it."
        )
    if turn.status == TurnStatus.READY:
        failed = (
            f"The last attempt failed: {turn.last_error} " if turn.last_error else ""
        )
        return f"{failed}A worker runs this thread next."
    return (
        turn.error or turn.last_error or f"The thread is {turn.get_status_display()}."
    )

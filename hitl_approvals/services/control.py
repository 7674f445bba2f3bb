"""What a person or a site may do to a whole turn: cancel it, retry it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import F

from hitl_approvals import permissions
from hitl_approvals.enums import (
    OPEN_TURN,
    EventType,
    InterruptStatus,
    OutcomeStatus,
    TurnStatus,
)
from hitl_approvals.exceptions import TransitionNotAllowed, TurnNotFound
from hitl_approvals.models import AgentTurn, DbNow
from hitl_approvals.services import rows, threads
from hitl_approvals.services.closing import cancel_leftovers
from hitl_approvals.services.events import actor_of, head, turn_event
from hitl_approvals.services.transactions import alias, run_atomic
from hitl_approvals.services.turns import wake
from hitl_approvals.types import Person


def read_turn(turn_id: UUID | str) -> AgentTurn:
    """Return the turn with the database's time beside it.

    Raises:
        TurnNotFound: There is no such turn.
    """
    try:
        turn = rows.turns().filter(pk=turn_id).annotate(db_now=DbNow()).first()
    except (ValidationError, ValueError):
        turn = None
    if turn is None:
        raise TurnNotFound
    return turn


def cancel(
    turn_id: UUID | str, *, by: Person | None, via: str, reason: str = ""
) -> AgentTurn:
    """End an open turn. What may be under way stays visible; the rest is withdrawn.

    Joins the caller's transaction.

    Raises:
        TurnNotFound: No such turn, or it may not be seen.
        ReviewerNotAllowed: The right is missing.
        TransitionNotAllowed: The turn is over already.
    """
    turn = read_turn(turn_id)
    permissions.require_administer_turn(by, turn)
    actor = actor_of(by, via)
    at: Any = turn.db_now  # type: ignore[attr-defined]
    event = turn_event(
        turn,
        EventType.TURN_CANCELLED,
        actor=actor,
        at=at,
        status=TurnStatus.CANCELLED,
        detail={"reason": reason},
    )

    def work() -> None:
        changed = (
            rows.turns()
            .filter(pk=turn.pk, status__in=OPEN_TURN, events_count=turn.events_count)
            .update(
                status=TurnStatus.CANCELLED,
                fence=F("fence") + 1,
                undecided=0,
                blocked=False,
                active_thread=None,
                lease_token=None,
                lease_until=None,
                finished_at=DbNow(),
                **head(event),
            )
        )
        if changed != 1:
            raise _conflict(turn.pk, "cancel")
        written = cancel_leftovers(
            rows.interrupts().filter(
                turn=turn.pk,
                status__in=[InterruptStatus.PENDING, InterruptStatus.DECIDED],
            ),
            at=at,
            actor=actor,
            outcome=OutcomeStatus.WITHDRAWN,
        )
        rows.events().bulk_create([*written, event])
        threads.unblock_oldest(turn.thread_key)

    run_atomic(work)
    return rows.turns().get(pk=turn.pk)


def retry(turn_id: UUID | str, *, by: Person | None, via: str) -> AgentTurn:
    """Give a stopped turn fresh attempts; its journal and decisions are kept.

    With calls in doubt the turn waits for them to be settled instead.

    Raises:
        TurnNotFound: No such turn, or it may not be seen.
        ReviewerNotAllowed: The right is missing.
        TransitionNotAllowed: The turn is not stopped.
    """
    turn = read_turn(turn_id)
    permissions.require_administer_turn(by, turn)
    stopped = [TurnStatus.NEEDS_ATTENTION, TurnStatus.FAILED]

    def work() -> None:
        # The count is only true once the turn's row is ours: the sweeper raises doubts
        # of stopped turns, and begins with that row too.
        held = rows.turns().filter(
            pk=turn.pk, status__in=stopped, events_count=turn.events_count
        )
        if held.update(attempts=0) != 1:
            raise _conflict(turn.pk, "retry")
        doubts = (
            rows.interrupts()
            .filter(turn=turn.pk, status=InterruptStatus.IN_DOUBT)
            .count()
        )
        status = TurnStatus.SUSPENDED if doubts else TurnStatus.READY
        event = turn_event(
            turn,
            EventType.TURN_RETRIED,
            actor=actor_of(by, via),
            at=turn.db_now,  # type: ignore[attr-defined]
            status=status,
        )
        held.update(
            status=status,
            undecided=doubts,
            next_run_at=DbNow(),
            dispatched_at=DbNow(),
            hints=0,
            finished_at=None,
            error="",
            **head(event),
        )
        event.save(using=alias(), force_insert=True)

    run_atomic(work)
    wake(turn.pk)
    return rows.turns().get(pk=turn.pk)


def _conflict(turn_id: UUID, verb: str) -> TransitionNotAllowed:
    status = rows.turns().values_list("status", flat=True).get(pk=turn_id)
    return TransitionNotAllowed(
        f"This turn is {TurnStatus(status).label} now; it cannot be {verb}led."
        if verb == "cancel"
        else f"This turn is {TurnStatus(status).label} now; there is nothing to {verb}.",
        turn_id=str(turn_id),
        status=status,
    )

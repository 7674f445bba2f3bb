"""What a person or a site may do to a whole turn: cancel it, retry it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Exists, F, OuterRef

from hitl_approvals import canonical, permissions
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import (
    OPEN_TURN,
    EventType,
    InterruptStatus,
    OutcomeStatus,
    StepStatus,
    TurnStatus,
)
from hitl_approvals.exceptions import (
    ReviewerNotAllowed,
    StaleReview,
    TransitionNotAllowed,
    TurnNotFound,
)
from hitl_approvals.models import (
    AgentTurn,
    DbNow,
    InterruptEvent,
    PendingInterrupt,
)
from hitl_approvals.services import partings, reading, rows, threads
from hitl_approvals.services.closing import cancel_leftovers
from hitl_approvals.services.events import (
    actor_of,
    head,
    interrupt_event,
    turn_event,
)
from hitl_approvals.services.hints import wake
from hitl_approvals.services.recording import record_event, record_events
from hitl_approvals.services.transactions import run_atomic
from hitl_approvals.types import ActorInfo, Person


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
    # With the cancellation itself: an engine is told until the workflow there is over.
    noted = partings.note(turn)

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
                **noted,
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
        record_events([*written, event])
        threads.unblock_oldest(turn.thread_key)

    try:
        run_atomic(work)
    except TransitionNotAllowed:
        if not _has_longer_chain(turn, OPEN_TURN):
            raise
        # Forked just now, or stuck: it is to end all the same.
        return cancel(turn_id, by=by, via=via, reason=reason)
    cancelled = rows.turns().get(pk=turn.pk)
    if partings.is_noted(cancelled):
        wake(turn.pk)
    return cancelled


def _has_longer_chain(turn: AgentTurn, statuses: Iterable[TurnStatus]) -> bool:
    """Tell whether a turn is in one of these still, and was only written about since."""
    found = rows.turns().filter(pk=turn.pk, status__in=statuses)
    return found.exclude(events_count=turn.events_count).exists()


def retry(turn_id: UUID | str, *, by: Person | None, via: str) -> AgentTurn:
    """Give a stopped turn fresh attempts; its journal and decisions are kept.

    With calls in doubt the turn waits for them to be settled instead.

    Raises:
        TurnNotFound: No such turn, or it may not be seen.
        ReviewerNotAllowed: The right is missing.
        TransitionNotAllowed: The turn is not stopped.
    """
    return _go_on(read_turn(turn_id), EventType.TURN_RETRIED, by, via, "retry", {})


KEEP: Any = object()
"""Stands for "the turn's own input"."""


def restart(
    turn_id: UUID | str,
    *,
    by: Person | None,
    via: str,
    input: Any = KEEP,  # noqa: A002
) -> AgentTurn:
    """Run a stopped turn from its beginning: nothing is replayed, gated calls ask again.

    What it did before stays on record, and decisions that were not used are withdrawn.
    Calls that need no approval run once more: that is what restarting means.

    Args:
        turn_id: A turn that needs attention or has failed.
        by: Who restarts; None is trusted code.
        via: The door, for the audit trail.
        input: Other input than before, as JSON.

    Raises:
        TurnNotFound: No such turn, or it may not be seen.
        ReviewerNotAllowed: The right is missing.
        TransitionNotAllowed: The turn is not stopped, or a call may be under way.
        PayloadRejected: The input is not JSON, too large or too deep.
    """
    turn = read_turn(turn_id)
    changes: dict[str, Any] = {"restarts": F("restarts") + 1, "state": None}
    if input is not KEEP:
        canonical.dumps(
            input,
            max_bytes=hitl_settings.max_payload_bytes,
            max_depth=hitl_settings.max_depth,
        )
        changes["input"] = input
    return _go_on(turn, EventType.TURN_RESTARTED, by, via, "restart", changes)


def restart_open(
    turn_id: UUID | str, *, by: Person | None, via: str, changes: dict[str, Any]
) -> AgentTurn:
    """Run a turn from its beginning that waits; what waited in it is withdrawn.

    Raises:
        TurnNotFound: No such turn, or it may not be seen.
        ReviewerNotAllowed: The right is missing.
        TransitionNotAllowed: The turn is not waiting, or a call may be under way.
    """
    changes = {**changes, "restarts": F("restarts") + 1, "state": None}
    return _go_on(
        read_turn(turn_id),
        EventType.TURN_RESTARTED,
        by,
        via,
        "restart",
        changes,
        allowed=(TurnStatus.READY, TurnStatus.SUSPENDED),
    )


def _go_on(
    turn: AgentTurn,
    type_: EventType,
    by: Person | None,
    via: str,
    verb: str,
    changes: dict[str, Any],
    *,
    allowed: Sequence[TurnStatus] = (TurnStatus.NEEDS_ATTENTION, TurnStatus.FAILED),
) -> AgentTurn:
    """Move a stopped turn to `ready`, or to `suspended` while doubts are open."""
    permissions.require_administer_turn(by, turn)
    actor = actor_of(by, via)
    at: Any = turn.db_now  # type: ignore[attr-defined]

    def work() -> None:
        # The count is only true once the turn's row is ours: the sweeper raises doubts
        # of stopped turns, and begins with that row too.
        held = rows.turns().filter(
            pk=turn.pk, status__in=allowed, events_count=turn.events_count
        )
        if held.update(attempts=0) != 1:
            raise _conflict(turn.pk, verb)
        written = _withdraw_all(turn, actor, at) if verb == "restart" else []
        mine = rows.interrupts().filter(turn=turn.pk)
        doubts = mine.filter(status=InterruptStatus.IN_DOUBT).count()
        status = TurnStatus.SUSPENDED if doubts else TurnStatus.READY
        # What came before a restart is never replayed, in a fork neither.
        steps = rows.steps().filter(turn=turn.pk).count()
        detail = {"after_step": steps} if verb == "restart" else None
        event = turn_event(
            turn, type_, actor=actor, at=at, status=status, detail=detail
        )
        held.update(
            status=status,
            undecided=doubts,
            next_run_at=DbNow(),
            dispatched_at=DbNow(),
            hints=0,
            finished_at=None,
            error="",
            **changes,
            **head(event),
        )
        record_events([*written, event])

    try:
        run_atomic(work)
    except TransitionNotAllowed:
        if not _has_longer_chain(turn, allowed):
            raise
        # Forked just now, which is no reason to refuse.
        again = read_turn(turn.pk)
        return _go_on(again, type_, by, via, verb, changes, allowed=allowed)
    wake(turn.pk)
    return rows.turns().get(pk=turn.pk)


def _withdraw_all(turn: AgentTurn, actor: ActorInfo, at: Any) -> list[InterruptEvent]:
    """Withdraw what a restarted turn will not ask for again.

    Raises:
        TransitionNotAllowed: A call may be under way; its fate has to be known first.
    """
    if rows.steps().filter(turn=turn.pk, status=StepStatus.STARTED).exists():
        raise TransitionNotAllowed(
            "A call of this turn may still be under way. Once its time is over it "
            "comes back as in doubt; settle it, then restart the turn.",
            turn_id=str(turn.pk),
            status=turn.status,
        )
    return cancel_leftovers(
        rows.interrupts().filter(
            turn=turn.pk,
            status__in=[InterruptStatus.PENDING, InterruptStatus.DECIDED],
        ),
        at=at,
        actor=actor,
        outcome=OutcomeStatus.WITHDRAWN,
    )


def re_review(
    interrupt_id: UUID | str,
    *,
    by: Person | None,
    via: str,
    revision: int | None = None,
) -> PendingInterrupt:
    """Take a decision back whose call the agent asks for differently now.

    For a turn that needs attention because it diverged. The next run then asks for the
    call as it is, as a new interrupt; retry the turn to let it run.

    Args:
        interrupt_id: A decision that nothing was run for.
        by: Who takes it back; None is trusted code.
        via: The door, for the audit trail.
        revision: The revision that the person saw; None skips the comparison.

    Raises:
        InterruptNotFound: No such interrupt, or it may not be seen.
        ReviewerNotAllowed: The right is missing.
        TransitionNotAllowed: The turn is not stopped, or the call was begun.
        StaleReview: The row is newer than what was seen.
    """
    row = reading.read(interrupt_id)
    permissions.require_view(by, row)
    turn = row.turn
    if turn is None:
        raise TransitionNotAllowed(
            "A remote agent's decisions are never taken back; it may ask anew."
        )
    try:
        permissions.require_administer_turn(by, turn)
    except TurnNotFound:  # the interrupt is there all the same
        raise ReviewerNotAllowed(permissions.why_not_administer()) from None
    if revision is not None and revision != row.revision:
        raise StaleReview(
            f"You saw revision {revision}; it is at {row.revision} now. "
            "Look at it again before you take it back.",
            seen=revision,
            current=row.revision,
        )
    event = interrupt_event(
        row,
        EventType.CANCELLED,
        actor=actor_of(by, via),
        at=row.db_now,  # type: ignore[attr-defined]
        status=InterruptStatus.CANCELLED,
        detail={"outcome": str(OutcomeStatus.SUPERSEDED)},
    )
    begun = rows.steps().filter(interrupt=OuterRef("pk"))

    def work() -> None:
        held = rows.turns().filter(pk=turn.pk, status=TurnStatus.NEEDS_ATTENTION)
        if held.update(hints=F("hints")) != 1:
            raise _conflict(turn.pk, "re-review")
        moved = (
            rows.interrupts()
            .filter(
                pk=row.pk,
                status=InterruptStatus.DECIDED,
                events_count=row.events_count,
            )
            .exclude(Exists(begun.exclude(status=StepStatus.NOT_STARTED)))
            .update(
                status=InterruptStatus.CANCELLED,
                outcome_status=OutcomeStatus.SUPERSEDED,
                **head(event),
            )
        )
        if moved != 1:
            raise TransitionNotAllowed(
                "Only a decision that nothing was run for can be taken back.",
                interrupt_id=str(row.pk),
            )
        record_event(event)

    run_atomic(work)
    return rows.interrupts().get(pk=row.pk)


def _conflict(turn_id: UUID, verb: str) -> TransitionNotAllowed:
    status = rows.turns().values_list("status", flat=True).get(pk=turn_id)
    return TransitionNotAllowed(
        f"This turn is {TurnStatus(status).label} now; it cannot be {verb}led."
        if verb == "cancel"
        else f"This turn is {TurnStatus(status).label} now; there is nothing to {verb}.",
        turn_id=str(turn_id),
        status=status,
    )

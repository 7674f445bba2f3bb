"""settle(): a person says what became of a call whose fate is unknown."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from django.db.models import F

from hitl_approvals import canonical, failpoints, permissions, selectors
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import (
    DecisionType,
    EventType,
    InterruptStatus,
    OutcomeStatus,
    StepStatus,
    TurnStatus,
)
from hitl_approvals.exceptions import StaleReview, TransitionNotAllowed
from hitl_approvals.models import AgentTurn, DbNow, PendingInterrupt, db_now_plus
from hitl_approvals.services import rows
from hitl_approvals.services.claims import (
    TRIES,
    free_for,
    only_hands_moved,
    require_free,
)
from hitl_approvals.services.events import actor_of, head, interrupt_event
from hitl_approvals.services.hints import wake
from hitl_approvals.services.idempotency import once
from hitl_approvals.services.reading import read
from hitl_approvals.services.recording import record_event
from hitl_approvals.services.transactions import run_atomic
from hitl_approvals.services.verdicts import time_to_start
from hitl_approvals.services.waiting import count_down
from hitl_approvals.types import ActorInfo, Person

Answer = Literal["happened", "run_again", "give_up"]

ANSWERS: tuple[Answer, ...] = ("happened", "run_again", "give_up")

_EVENT = {
    "happened": EventType.SETTLED_HAPPENED,
    "run_again": EventType.SETTLED_RUN_AGAIN,
    "give_up": EventType.SETTLED_GAVE_UP,
}
_STATUS = {
    "happened": InterruptStatus.RESOLVED,
    "run_again": InterruptStatus.DECIDED,
    "give_up": InterruptStatus.CANCELLED,
}


class _HandsMoved(Exception):
    """The row is the same, but was claimed or released since it was read."""


class _TurnMoved(Exception):
    """The turn was cancelled or stopped since it was read; the doubt may be as it was."""


def settle(
    interrupt_id: UUID | str,
    answer: Answer,
    *,
    by: Person | None,
    via: str,
    result: Any = None,
    note: str = "",
    revision: int | None = None,
    key: str | None = None,
) -> PendingInterrupt:
    """Settle a call in doubt. Joins the caller's transaction.

    Args:
        interrupt_id: The row in doubt.
        answer: `happened` (with the `result` for the agent), `run_again` (a second
            authorization, only after the hard deadline, and never for a remote agent's
            call), or `give_up`.
        by: Who settles; None is trusted code.
        via: The door, for the audit trail.
        result: What the call returned, as JSON; only with `happened`.
        note: How the person found out.
        revision: The revision that the person saw; None skips the comparison.
        key: Idempotency key. The same key by the same person with the same answer
            settles once, and returns the row as it is by then.

    Raises:
        ValueError: There is no such answer.
        InterruptNotFound: No such row, or it may not be seen.
        ReviewerNotAllowed: The right to settle is missing.
        ClaimedByAnother: Somebody else holds it, and the right to assign is missing.
        TransitionNotAllowed: It is not in doubt, or may not run again (yet).
        StaleReview: The row is newer than what was seen.
        PayloadRejected: The result is not what the tool returns; nothing was recorded.
        KeyReused: The key stands for another answer.
    """
    return settle_or_find(
        interrupt_id,
        answer,
        by=by,
        via=via,
        result=result,
        note=note,
        revision=revision,
        key=key,
    )[0]


def settle_or_find(
    interrupt_id: UUID | str,
    answer: Answer,
    *,
    by: Person | None,
    via: str,
    result: Any = None,
    note: str = "",
    revision: int | None = None,
    key: str | None = None,
) -> tuple[PendingInterrupt, bool]:
    """Settle like `settle`, and say whether the key had done so before.

    Raises:
        The same as `settle`.
    """
    if answer not in _EVENT:
        raise ValueError(f"A doubt is settled by {', '.join(_EVENT)}; got {answer!r}.")
    found = {"result": result, "note": note}

    def work() -> PendingInterrupt:
        return _settle_seen(
            interrupt_id, answer, by=by, via=via, revision=revision, **found
        )

    body = {"answer": answer, **found}
    replayed = once("settle", interrupt_id, work, by=by, key=key, body=body)
    row = read(interrupt_id)
    permissions.require_view(by, row)
    return row, replayed


def _settle_seen(
    interrupt_id: UUID | str,
    answer: Answer,
    *,
    by: Person | None,
    via: str,
    result: Any,
    note: str,
    revision: int | None,
) -> PendingInterrupt:
    for _try in range(TRIES):
        row = read(interrupt_id)
        permissions.require_settle(by, row)
        _require_in_doubt(row, revision)
        require_free(by, row)
        try:
            return _settle(row, answer, by=by, via=via, result=result, note=note)
        except (_HandsMoved, _TurnMoved):
            continue
    raise TransitionNotAllowed("The row changed just now; look at it again.")


def _settle(
    row: PendingInterrupt,
    answer: Answer,
    *,
    by: Person | None,
    via: str,
    result: Any,
    note: str,
) -> PendingInterrupt:
    if answer == "run_again":
        _require_may_run_again(row)
    if answer == "happened":
        _require_fits(row, result)
    actor = actor_of(by, via)
    now: datetime = row.db_now  # type: ignore[attr-defined]
    limit = time_to_start(row) if answer == "run_again" else None
    event = interrupt_event(
        row,
        _EVENT[answer],
        actor=actor,
        at=now,
        status=_STATUS[answer],
        decision=DecisionType.APPROVE if _needs_decision(row, answer) else None,
        generation=row.generation + (answer == "run_again"),
        revision=row.revision + 1,
        digest_run=row.decision_digest or row.args_digest,
        execute_by=None if limit is None else now + limit,
        detail={"note": note},
    )

    def work() -> None:
        if row.turn is not None:
            _hold_turn(row.turn)
        moved = (
            rows.interrupts()
            .filter(
                free_for(by),
                pk=row.pk,
                status=InterruptStatus.IN_DOUBT,
                events_count=row.events_count,
            )
            .update(
                **_columns(row, answer, limit, by, actor),
                **({"outcome": result} if answer == "happened" else {}),
                **head(event),
            )
        )
        if moved != 1:
            if only_hands_moved(row, rows.interrupts().get(pk=row.pk)):
                raise _HandsMoved
            raise TransitionNotAllowed("Somebody settled this just now.")
        if answer == "happened":
            rows.steps().filter(
                turn=row.turn_id,
                interrupt=row.pk,
                generation=row.generation,
                status=StepStatus.UNKNOWN,
            ).update(status=StepStatus.SUCCEEDED, result=result, finished_at=DbNow())
        record_event(event)
        failpoints.reach("settle.before_commit")

    run_atomic(work)
    failpoints.reach("settle.after_commit")
    if row.turn is not None:
        wake(row.turn.pk)
    return rows.interrupts().get(pk=row.pk)


def _require_in_doubt(row: PendingInterrupt, revision: int | None) -> None:
    """Raise unless there is a doubt, and it is the one that the person saw.

    Raises:
        TransitionNotAllowed, StaleReview
    """
    if row.status != InterruptStatus.IN_DOUBT:
        raise TransitionNotAllowed(
            f"This is {row.get_status_display()}, not in doubt; nothing was recorded.",
            interrupt_id=str(row.pk),
            status=row.status,
        )
    if revision is not None and revision != row.revision:
        raise StaleReview(
            f"You saw revision {revision}; it is at {row.revision} now. "
            "Look at it again before you settle it.",
            seen=revision,
            current=row.revision,
        )


def _require_fits(row: PendingInterrupt, result: Any) -> None:
    """Check a result that a person typed as the tool's own results are checked.

    Raises:
        PayloadRejected: It is not JSON, too large, or not of the tool's return type.
    """
    canonical.dumps(
        result,
        max_bytes=hitl_settings.max_payload_bytes,
        max_depth=hitl_settings.max_depth,
    )
    tool = selectors.tool_of(row)
    if tool is not None:
        tool.signature.load_result(result)


def _needs_decision(row: PendingInterrupt, answer: Answer) -> bool:
    """An ungated call has no decision; running it again is the first one."""
    return answer == "run_again" and row.decision is None


def _require_may_run_again(row: PendingInterrupt) -> None:
    """Refuse while the first call may still be in flight, and in closed turns.

    Raises:
        TransitionNotAllowed: With the time from which it is possible.
    """
    turn = row.turn
    if turn is None:
        raise TransitionNotAllowed(
            "A remote agent made this call by itself, so nothing here can run it again. "
            "Say that it happened, or give up; the agent may ask anew."
        )
    if turn.status not in (TurnStatus.SUSPENDED, TurnStatus.NEEDS_ATTENTION):
        raise TransitionNotAllowed("The turn is over; nothing can run in it again.")
    step = (
        rows.steps()
        .filter(interrupt=row.pk, generation=row.generation)
        .order_by("-generation")
        .first()
    )
    now = row.db_now  # type: ignore[attr-defined]
    if step is not None and step.hard_deadline is not None and now < step.hard_deadline:
        left = (step.hard_deadline - now).total_seconds()
        raise TransitionNotAllowed(
            f"The first call may still be under way; run it again in {left:.0f} s at "
            "the earliest.",
            not_before=step.hard_deadline,
        )


def _hold_turn(turn: AgentTurn) -> None:
    """Take the turn's row: count down if it waits for this, else assert its status."""
    if turn.status == TurnStatus.SUSPENDED:
        held = count_down(turn.pk)
    else:
        same = rows.where(AgentTurn, pk=turn.pk, status=turn.status)
        held = same.update(hints=F("hints")) == 1
    if not held:
        raise _TurnMoved


def _columns(
    row: PendingInterrupt,
    answer: Answer,
    limit: timedelta | None,
    by: Person | None,
    actor: ActorInfo,
) -> dict[str, Any]:
    changes: dict[str, Any] = {
        "status": _STATUS[answer],
        "revision": row.revision + 1,
    }
    if answer == "happened":
        changes |= {
            "outcome_status": OutcomeStatus.SUCCEEDED,
            "resolved_at": DbNow(),
        }
    elif answer == "give_up":
        changes["outcome_status"] = OutcomeStatus.GIVEN_UP
    else:
        changes["generation"] = row.generation + 1
        # A second authorization is limited in time like the first.
        changes["execute_by"] = None if limit is None else db_now_plus(limit)
        if row.decision is None:
            changes |= {
                "decision": DecisionType.APPROVE,
                "decision_digest": row.args_digest,
                "decided_at": DbNow(),
                "decided_by": by,
                "decided_by_label": actor.label,
                "decided_via": actor.via,
            }
    return changes

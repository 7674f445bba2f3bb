"""decide(): the one function behind every door through which a person answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from hitl_approvals import canonical, failpoints, permissions
from hitl_approvals.decisions import (
    Decision,
    decision_body,
    parse_decision,
)
from hitl_approvals.enums import (
    DecisionType,
    EventType,
    InterruptStatus,
)
from hitl_approvals.exceptions import (
    AlreadyDecided,
    HitlApprovalsError,
    InterruptCancelled,
    InterruptExpired,
    KeyReused,
    StaleReview,
    TransitionNotAllowed,
)
from hitl_approvals.models import DbNow, InterruptEvent, PendingInterrupt, db_now_plus
from hitl_approvals.services import rows
from hitl_approvals.services.claims import (
    TRIES,
    free_for,
    only_hands_moved,
    require_free,
)
from hitl_approvals.services.events import SYSTEM, actor_of, head, interrupt_event
from hitl_approvals.services.hints import wake
from hitl_approvals.services.reading import read
from hitl_approvals.services.recording import record_event
from hitl_approvals.services.transactions import run_atomic
from hitl_approvals.services.verdicts import Verdict, time_to_start, translate
from hitl_approvals.services.waiting import count_down
from hitl_approvals.types import ActorInfo, DecisionReceipt, Person

EVENT_OF = {
    DecisionType.APPROVE: EventType.APPROVED,
    DecisionType.EDIT: EventType.EDITED,
    DecisionType.REJECT: EventType.REJECTED,
    DecisionType.RESPOND: EventType.RESPONDED,
    DecisionType.EXPIRE: EventType.EXPIRED,
}


class _Lost(Exception):
    """The conditional update found another row than the one that was read."""


def decide(
    interrupt_id: UUID | str,
    decision: Decision | Mapping[str, Any],
    *,
    by: Person | None,
    via: str,
    revision: int | None = None,
    key: str | None = None,
) -> DecisionReceipt:
    """Record one decision; if it was the turn's last open one, a run is owed.

    Joins the caller's transaction. Reads first, then one transaction that starts with
    the turn's row, so siblings decided at the same moment count one after the other.
    A remote agent's request has no turn: it is the first row that is written.

    Args:
        interrupt_id: The row to decide.
        decision: An `Approve`, `Reject`, `Edit` or `Respond`, or the same as a mapping.
        by: Who decides. None is trusted code and is recorded as `system`.
        via: The door, as text for the audit trail.
        revision: The revision that the person saw; None skips the comparison.
        key: Idempotency key. The same key by the same person with the same decision
            gets the stored answer.

    Raises:
        TypeError: The decision is malformed.
        InterruptNotFound: No such row, or it may not be seen.
        ReviewerNotAllowed: It may be seen but not decided.
        ClaimedByAnother: Somebody else holds it, and the right to assign is missing.
        AlreadyDecided: Somebody was faster; the error says who, what and when.
        InterruptExpired: The time to decide has passed.
        InterruptCancelled: It was withdrawn.
        StaleReview: The row is newer than what was seen.
        KeyReused: The key stands for another decision.
        DecisionNotAllowed: This kind of decision is not offered here.
        PayloadRejected: Arguments or answer do not fit; nothing is stored.
        SnapshotMismatch: The stored arguments are not the ones that were frozen.
    """
    parsed = parse_decision(decision)
    row = read(interrupt_id)
    permissions.require_decide(by, row)
    body = canonical.digest(
        canonical.dumps(decision_body(parsed), max_bytes=None, max_depth=None)
    )
    hashed = None if key is None else canonical.key_digest("decide", str(row.pk), key)
    seen = row
    for _try in range(TRIES):
        replay = _replayed(row, by, hashed, body)
        if replay is not None:
            return replay
        _require_open(row)
        _require_seen(row, revision)
        require_free(by, row)
        verdict = translate(row, parsed)
        extra = {"decided_by": by, "decision_key": hashed, "decision_body": body}
        try:
            _apply(row, verdict, actor_of(by, via), extra, free=free_for(by))
        except _Lost:
            seen, row = row, read(row.pk)
            if only_hands_moved(seen, row):
                continue
            break
        return _receipt(row, verdict.type, revision=row.revision + 1)
    replay = _replayed(row, by, hashed, body)
    if replay is not None:
        return replay
    _require_open(row)
    raise StaleReview(
        "The row changed while your decision was on its way; look at it again.",
        seen=seen.revision,
        current=row.revision,
    )


def _require_seen(row: PendingInterrupt, revision: int | None) -> None:
    if revision is not None and revision != row.revision:
        raise StaleReview(
            f"You saw revision {revision}; it is at {row.revision} now. "
            "Look at it again before you decide.",
            seen=revision,
            current=row.revision,
        )


def expire(interrupt_id: UUID) -> bool:
    """Let the clock decide a request whose time has passed; False if it was not due."""
    try:
        row = read(interrupt_id)
        verdict = Verdict(DecisionType.EXPIRE, {"reason": ""})
        _apply(row, verdict, SYSTEM, {"decided_by": None}, due=True)
    except (_Lost, HitlApprovalsError):
        return False
    return True


def _apply(
    row: PendingInterrupt,
    verdict: Verdict,
    actor: ActorInfo,
    extra: dict[str, Any],
    *,
    due: bool = False,
    free: Q | None = None,
) -> None:
    """Write turn, interrupt and event, in this order, or nothing.

    Raises:
        _Lost: A row count was not 1.
    """
    turn_id = row.turn_id
    limit = time_to_start(row)
    runs = bool(verdict.may_run)
    now: datetime = row.db_now  # type: ignore[attr-defined]
    event = interrupt_event(
        row,
        EVENT_OF[verdict.type],
        actor=actor,
        at=now,
        status=InterruptStatus.DECIDED,
        decision=verdict.type,
        revision=row.revision + 1,
        digest_shown=row.args_digest,
        digest_run=verdict.may_run,
        execute_by=now + limit if runs and limit is not None else None,
        detail={"reason": verdict.columns.get("reason", "")},
    )
    in_time = (
        Q(expires_at__lte=DbNow())
        if due
        else Q(expires_at__isnull=True) | Q(expires_at__gt=DbNow())
    )
    still = in_time if free is None else in_time & free

    def work() -> None:
        if due and not _free(row):
            raise _Lost
        if turn_id is not None and not count_down(turn_id):
            raise _Lost
        _decide_row(row, verdict, actor, extra, still, event, limit if runs else None)
        record_event(event)
        failpoints.reach("decide.before_commit")

    run_atomic(work)
    failpoints.reach("decide.after_commit")
    if turn_id is not None:
        wake(turn_id)


def _free(row: PendingInterrupt) -> bool:
    """Lock the first row that the clock's decision writes, unless somebody holds it."""
    if row.turn_id is None:
        return rows.take(rows.interrupts().filter(pk=row.pk))
    return rows.take(rows.turns().filter(pk=row.turn_id))


def _decide_row(
    row: PendingInterrupt,
    verdict: Verdict,
    actor: ActorInfo,
    extra: dict[str, Any],
    still: Q,
    event: InterruptEvent,
    limit: timedelta | None,
) -> None:
    changed = rows.where(
        PendingInterrupt,
        still,
        pk=row.pk,
        status=InterruptStatus.PENDING,
        revision=row.revision,
        events_count=row.events_count,
    ).update(
        status=InterruptStatus.DECIDED,
        decision=verdict.type,
        decision_digest=verdict.may_run,
        decided_by_label=actor.label,
        decided_via=actor.via,
        decided_at=DbNow(),
        execute_by=None if limit is None else db_now_plus(limit),
        revision=row.revision + 1,
        **verdict.columns,
        **extra,
        **head(event),
    )
    if changed != 1:
        raise _Lost


def _replayed(
    row: PendingInterrupt,
    by: Person | None,
    hashed: str | None,
    body: str,
) -> DecisionReceipt | None:
    """Return the stored answer if this very request was already recorded.

    Raises:
        KeyReused: The key was used for another decision.
    """
    if hashed is None or row.decision_key != hashed:
        return None
    if (
        row.decided_by_id != (None if by is None else by.pk)
        or row.decision_body != body
    ):
        raise KeyReused(
            "This key was already used for another decision on this interrupt; "
            "nothing was changed. Send a new key to mean a new request."
        )
    return _receipt(row, row.decision or "", revision=row.revision, replayed=True)


def _receipt(
    row: PendingInterrupt, decision: str, *, revision: int, replayed: bool = False
) -> DecisionReceipt:
    return DecisionReceipt(
        interrupt_id=row.pk,
        turn_id=row.turn_id,
        decision=str(decision),
        revision=revision,
        replayed=replayed,
    )


def _require_open(row: PendingInterrupt) -> None:
    """Tell the loser who decided what, when.

    Raises:
        AlreadyDecided, InterruptExpired, InterruptCancelled, TransitionNotAllowed
    """
    context: dict[str, Any] = {
        "interrupt_id": str(row.pk),
        "status": row.status,
        "decision": row.decision,
        "decided_by": row.decided_by_label,
        "decided_at": row.decided_at,
    }
    now: datetime = row.db_now  # type: ignore[attr-defined]
    if row.status == InterruptStatus.CANCELLED:
        raise InterruptCancelled(**context)
    if row.decision == DecisionType.EXPIRE:
        raise InterruptExpired(**context)
    if row.status == InterruptStatus.IN_DOUBT:
        raise TransitionNotAllowed(
            "Whether this call happened is in doubt; it must be settled, not decided.",
            **context,
        )
    if row.status != InterruptStatus.PENDING:
        when = row.decided_at.isoformat(timespec="seconds") if row.decided_at else "?"
        raise AlreadyDecided(
            f"{row.decided_by_label or 'Somebody'} already decided this "
            f"({row.decision}) at {when}; your decision was not recorded and ran "
            "nothing.",
            **context,
        )
    if row.expires_at is not None and row.expires_at <= now:
        raise InterruptExpired(**context)

"""consume(): one process of a remote agent fetches a decision, and only that one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from hitl_approvals import canonical
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import (
    DecisionType,
    Door,
    EventType,
    InterruptStatus,
    OutcomeStatus,
)
from hitl_approvals.exceptions import (
    AlreadyConsumed,
    InterruptCancelled,
    InterruptExpired,
    SnapshotMismatch,
    TransitionNotAllowed,
)
from hitl_approvals.models import AgentClient, DbNow, PendingInterrupt, db_now_plus
from hitl_approvals.services import clients, rows
from hitl_approvals.services.events import interrupt_event
from hitl_approvals.services.remote import RUNS, TRIES, move, read_own, unsettled
from hitl_approvals.services.transactions import refuse_inside_transaction
from hitl_approvals.text import storable
from hitl_approvals.types import ActorInfo, ConsumedDecision

_IN_TIME = Q(execute_by__isnull=True) | Q(execute_by__gt=DbNow())
_ENDS = {
    DecisionType.REJECT: OutcomeStatus.REFUSED,
    DecisionType.EXPIRE: OutcomeStatus.EXPIRED,
    DecisionType.RESPOND: OutcomeStatus.ANSWERED,
}
"""Decisions after which there is nothing to run: fetching them resolves the request."""
_KEY_LENGTH = 64
"""What the column holds."""
_HASHED = "#"
"""What a key begins with that is kept by its digest."""


def consume(
    interrupt_id: UUID | str,
    *,
    client: AgentClient,
    key: str,
    via: str = Door.PYTHON,
) -> ConsumedDecision:
    """Fetch a decision under a key; the first key is the only one that may act on it.

    The same key gets the same answer at any time. An approval must be fetched before
    `execute_by`, stays `decided`, and its outcome is owed by `outcome_due`. A refusal,
    an expiry or an answer is resolved by this.

    Args:
        interrupt_id: The request.
        client: Who fetches.
        key: Names the process, or the attempt, that will act. One that cannot know
            whether it acted must not come back with the key that it had.
        via: The door, for the audit trail.

    Raises:
        UnsafeContext: A transaction is open: a rollback would forget who may act.
        ClientNotAllowed: The client was revoked.
        InterruptNotFound: No such request, or it is another client's.
        TransitionNotAllowed: Nobody has decided yet, or it is a turn's.
        AlreadyConsumed: Another key has it, or this one gave it back.
        InterruptExpired: The approval was not fetched in time.
        InterruptCancelled: It was withdrawn.
        SnapshotMismatch: The stored arguments are not the ones that were decided.
    """
    refuse_inside_transaction("consume()")
    actor = clients.actor_of_client(clients.active(client), via)
    for _try in range(TRIES):
        row = read_own(interrupt_id, client)
        if row.consumed_at is not None:
            _require_same_key(row, key)
            return _answer(row, replayed=True)
        _require_decided(row)
        if gave_back(row, key):
            # Its call to give back may still be on the way a second time.
            raise AlreadyConsumed(
                "This key gave the approval back; fetch it under a new one.",
                interrupt_id=str(row.pk),
                status=row.status,
            )
        _runnable(row)
        if _fetch(row, _kept(row, key), actor):
            return _answer(read_own(row.pk, client))
    raise unsettled(interrupt_id)


def require_consumer(row: PendingInterrupt, key: str) -> None:
    """Refuse a key that did not fetch this decision.

    Raises:
        TransitionNotAllowed: Nobody fetched it.
        AlreadyConsumed: Another key did.
    """
    if row.consumed_at is None:
        raise TransitionNotAllowed(
            "Nobody fetched this decision, so nothing can have come of it.",
            interrupt_id=str(row.pk),
            status=row.status,
        )
    _require_same_key(row, key)


def gave_back(row: PendingInterrupt, key: str) -> bool:
    """Tell whether the audit trail has it that this key gave the approval back."""
    told = rows.events().filter(subject_id=row.pk, type=EventType.GIVEN_BACK)
    return any((event.detail or {}).get("key") in names_of(row, key) for event in told)


def names_of(row: PendingInterrupt, key: str) -> tuple[str, str]:
    """Return what may stand for a key: itself, or what its column keeps of it."""
    return key, _kept(row, key)


def _kept(row: PendingInterrupt, key: str) -> str:
    """Return a key as its column keeps it: as it is, or by its digest if it is long.

    It is no secret, and who looks for the process that has a call wants to read it.
    """
    fits = len(key) <= _KEY_LENGTH and storable(key) and not key.startswith(_HASHED)
    if fits and key.strip():
        return key
    digest = canonical.key_digest("consume", str(row.pk), key)
    return _HASHED + digest[: _KEY_LENGTH - len(_HASHED)]


def _require_same_key(row: PendingInterrupt, key: str) -> None:
    if row.consume_key not in names_of(row, key):
        raise AlreadyConsumed(
            "This decision was fetched under another key. Whoever holds that key may "
            "act on it; you must not.",
            interrupt_id=str(row.pk),
            status=row.status,
            consumed_at=row.consumed_at,
        )


def _require_decided(row: PendingInterrupt) -> None:
    context: dict[str, Any] = {"interrupt_id": str(row.pk), "status": row.status}
    if row.status == InterruptStatus.PENDING:
        raise TransitionNotAllowed(
            "Nobody has decided this yet; there is nothing to fetch.", **context
        )
    if row.status == InterruptStatus.CANCELLED:
        raise InterruptCancelled(
            f"This was {row.get_outcome_status_display()}; nothing may run from it.",
            **context,
        )
    if row.status != InterruptStatus.DECIDED:
        raise TransitionNotAllowed(
            f"This is {row.get_status_display()}; there is nothing to fetch.", **context
        )
    now = row.db_now  # type: ignore[attr-defined]
    late = row.execute_by is not None and row.execute_by <= now
    if late and row.decision in RUNS:
        raise InterruptExpired(
            "The approval was not fetched in time; nothing may run from it. Ask anew.",
            execute_by=row.execute_by,
            **context,
        )


def _fetch(row: PendingInterrupt, kept: str, actor: ActorInfo) -> bool:
    runs = row.decision in RUNS
    changes: dict[str, Any] = {"consumed_at": DbNow(), "consume_key": kept}
    if runs:
        type_, status, detail = EventType.CONSUMED, InterruptStatus.DECIDED, None
        changes["outcome_due"] = db_now_plus(_time_to_report(row))
    else:
        outcome = _ENDS[DecisionType(str(row.decision))]
        type_, status = EventType.RESOLVED, InterruptStatus.RESOLVED
        detail = {"outcome": str(outcome)}
        changes |= {
            "status": status,
            "outcome_status": outcome,
            "resolved_at": DbNow(),
        }
    event = interrupt_event(
        row,
        type_,
        actor=actor,
        at=row.db_now,  # type: ignore[attr-defined]
        status=status,
        digest_shown=row.args_digest if runs else "",
        digest_run=row.decision_digest if runs else "",
        execute_by=row.execute_by,
        detail=detail,
    )
    free = Q(consumed_at__isnull=True)
    return move(row, event, free & _IN_TIME if runs else free, **changes)


def _time_to_report(row: PendingInterrupt) -> timedelta:
    within = row.policy.get("outcome_within")
    return hitl_settings.outcome_within if within is None else timedelta(seconds=within)


def _runnable(row: PendingInterrupt) -> str | None:
    """Return the text of the arguments that may run; None where nothing may.

    Raises:
        SnapshotMismatch: It is not the text that was digested when it was decided.
    """
    if row.decision not in RUNS:
        return None
    edited = row.decision == DecisionType.EDIT
    text = row.decision_args_text if edited else row.args_text
    if (
        text is None
        or not text.isascii()
        or canonical.digest(text) != row.decision_digest
    ):
        raise SnapshotMismatch(
            "The stored arguments were changed after the decision; nothing may run "
            "from them. Withdraw the request and look into how that happened."
        )
    return text


def _answer(row: PendingInterrupt, *, replayed: bool = False) -> ConsumedDecision:
    text = _runnable(row)
    args: Any = None if text is None else canonical.stored(text)
    assert row.decided_at is not None  # noqa: S101  it was decided
    return ConsumedDecision(
        interrupt_id=row.pk,
        decision=str(row.decision),
        args=args,
        args_digest=row.decision_digest,
        value=row.decision_value,
        reason=row.reason,
        decided_by=row.decided_by_label,
        decided_at=row.decided_at,
        execute_by=row.execute_by,
        outcome_due=row.outcome_due,
        status=row.status,
        replayed=replayed,
    )

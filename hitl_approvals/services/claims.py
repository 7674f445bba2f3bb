"""claim(), release(), assign(): who has an open row in hand, for a while.

A claim keeps other people from deciding or settling, and lapses by itself. It moves
nothing else: no status, no revision, no run.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import F, Q

from hitl_approvals import failpoints, permissions, selectors
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import EventType, InterruptStatus
from hitl_approvals.exceptions import (
    ClaimedByAnother,
    InterruptCancelled,
    InterruptExpired,
    PayloadRejected,
    TransitionNotAllowed,
)
from hitl_approvals.models import DbNow, InterruptEvent, PendingInterrupt
from hitl_approvals.services import rows
from hitl_approvals.services.events import actor_of, head, interrupt_event
from hitl_approvals.services.reading import read
from hitl_approvals.services.recording import record_event
from hitl_approvals.services.transactions import run_atomic
from hitl_approvals.types import Person

MAX_MINUTES = 24 * 60
"""Nobody keeps a row from everybody else for longer without saying so again."""
TRIES = 5
MAX_NOTE = 1000


def claim(
    interrupt_id: UUID | str, *, by: Person, via: str, minutes: float | None = None
) -> PendingInterrupt:
    """Take an open row in hand, or keep it for longer. Joins the caller's transaction.

    Args:
        interrupt_id: A row that is pending or in doubt.
        by: Who takes it: somebody who could decide it, or settle it if it is in doubt.
        via: The door, for the audit trail.
        minutes: For how long; without it `CLAIM_FOR`.

    Raises:
        InterruptNotFound: No such row, or it may not be seen.
        ReviewerNotAllowed: The person could not close it, so may not hold it.
        ClaimedByAnother: Somebody else holds it, and the right to assign is missing.
        TransitionNotAllowed: It is not open any more; also `InterruptExpired` and
            `InterruptCancelled`.
        PayloadRejected: The minutes are none.
    """
    span = _span(minutes)
    for _try in range(TRIES):
        row = read(interrupt_id)
        permissions.require_hold(by, row)
        _require_open(row)
        require_free(by, row)
        if _hand(row, EventType.CLAIMED, by, span, actor=by, via=via):
            return rows.interrupts().get(pk=row.pk)
    raise _unsettled(interrupt_id)


def release(
    interrupt_id: UUID | str, *, by: Person | None, via: str, note: str = ""
) -> PendingInterrupt:
    """Let an open row go, one's own or with the right to assign anybody's.

    Joins the caller's transaction.

    Args:
        interrupt_id: A row that somebody holds.
        by: Who lets it go; None is trusted code.
        via: The door, for the audit trail.
        note: Why, for the audit trail; at most 1000 characters are kept.

    Raises:
        InterruptNotFound: No such row, or it may not be seen.
        ClaimedByAnother: Somebody else holds it, and the right to assign is missing.
        TransitionNotAllowed: Nobody holds it, or it is not open any more.
    """
    for _try in range(TRIES):
        row = read(interrupt_id)
        permissions.require_view(by, row)
        _require_open(row, in_time=False)
        if not selectors.is_held(row, _now(row)):
            raise TransitionNotAllowed(
                "Nobody holds this, so there is nothing to release.",
                interrupt_id=str(row.pk),
                status=row.status,
            )
        require_free(by, row)
        if _hand(row, EventType.RELEASED, None, None, actor=by, via=via, note=note):
            return rows.interrupts().get(pk=row.pk)
    raise _unsettled(interrupt_id)


def assign(
    interrupt_id: UUID | str, to: Person, *, by: Person | None, via: str
) -> PendingInterrupt:
    """Give an open row to somebody for `CLAIM_FOR`, whoever holds it now.

    Joins the caller's transaction. It lapses like a claim, so that somebody who is not
    there keeps nobody waiting.

    Args:
        interrupt_id: A row that is pending or in doubt.
        to: Who gets it: somebody who could decide it, or settle it if it is in doubt.
        by: Who gives; needs the right to assign. None is trusted code.
        via: The door, for the audit trail.

    Raises:
        InterruptNotFound: No such row, or it may not be seen.
        ReviewerNotAllowed: The right to assign is missing.
        PayloadRejected: The other person could not close it.
        TransitionNotAllowed: It is not open any more; also `InterruptExpired` and
            `InterruptCancelled`.
    """
    for _try in range(TRIES):
        row = read(interrupt_id)
        permissions.require_assign(by, row)
        _require_open(row)
        if permissions.why_not_hold(to, row) is not None:
            raise _no_such_person()
        span = hitl_settings.claim_for
        if _hand(row, EventType.ASSIGNED, to, span, actor=by, via=via):
            return rows.interrupts().get(pk=row.pk)
    raise _unsettled(interrupt_id)


def assign_by_name(
    interrupt_id: UUID | str, name: str, *, by: Person | None, via: str
) -> PendingInterrupt:
    """Give an open row to whoever logs in by this name, like `assign`.

    Raises:
        The same as `assign`. Who may not assign does not learn who is there.
    """
    permissions.require_assign(by, read(interrupt_id))
    to = permissions.person_named(name)
    if to is None:
        raise _no_such_person()
    return assign(interrupt_id, to, by=by, via=via)


def _no_such_person() -> PayloadRejected:
    """Return the one refusal for people who are not there and who may not close it."""
    message = "There is no such person, or they could not close this."
    return PayloadRejected(message, errors=[{"loc": "to", "message": message}])


def require_free(by: Person | None, row: PendingInterrupt) -> None:
    """Refuse what another person holds, unless `by` may assign; None is trusted code.

    Raises:
        ClaimedByAnother: It says who holds the row, and until when.
    """
    if by is None or not selectors.in_the_way_of(by, row, _now(row)):
        return
    who, until = selectors.holder_name(row), row.claim_until
    assert until is not None  # noqa: S101  it is held
    raise ClaimedByAnother(
        f"{who} holds this until {until:%H:%M:%S} UTC; nothing was recorded, and "
        "nothing ran. It is free again after that, or when it is released.",
        interrupt_id=str(row.pk),
        status=row.status,
        claimed_by=who,
        claimed_until=until,
    )


def free_for(by: Person | None) -> Q:
    """Return the condition for rows that no other person's claim protects from `by`."""
    if by is None or permissions.may_assign(by):
        return Q()
    nobody = Q(assignee__isnull=True) | Q(claim_until__isnull=True)
    return nobody | Q(claim_until__lte=DbNow()) | Q(assignee=by.pk)


def only_hands_moved(before: PendingInterrupt, after: PendingInterrupt) -> bool:
    """Tell whether a row that was read twice is the same to whoever decides it.

    Its chain is longer: it was claimed, released, assigned or revealed meanwhile.
    """
    return (
        before.events_count != after.events_count
        and before.revision == after.revision
        and before.status == after.status
    )


def _hand(
    row: PendingInterrupt,
    type_: EventType,
    to: Person | None,
    span: timedelta | None,
    *,
    actor: Person | None,
    via: str,
    note: str = "",
) -> bool:
    """Put a row into somebody's hands, or nobody's; False if it moved meanwhile."""
    now = _now(row)
    until = None if span is None else now + span
    detail: dict[str, Any] = {}
    if to is not None and until is not None:
        detail = {"to": to.get_username(), "until": _text(until)}
    if selectors.is_held(row, now):
        detail["from"] = selectors.holder_name(row)
    if note:
        detail["note"] = note[:MAX_NOTE]
    event = interrupt_event(
        row,
        type_,
        actor=actor_of(actor, via),
        at=now,
        status=row.status,
        detail=detail,
    )
    return append_aside(
        row,
        event,
        Q() if type_ == EventType.ASSIGNED else free_for(actor),
        assignee=None if to is None else to.pk,
        claim_until=until,
    )


def append_aside(
    row: PendingInterrupt,
    event: InterruptEvent,
    condition: Q,
    *,
    durable: bool = False,
    **changes: Any,
) -> bool:
    """Write an event that tells of no transition, if the row is as it was read.

    Args:
        row: The row as it was read.
        event: The next event of its chain.
        condition: What must hold besides, by the database's clock.
        durable: Refuse to be part of a caller's transaction.
        changes: The columns to set.
    """

    def work() -> bool:
        if row.turn_id is not None:
            # Whoever closes or resumes a turn reads its chains while it holds this row.
            rows.turns().filter(pk=row.turn_id).update(hints=F("hints"))
        moved = (
            rows.interrupts()
            .filter(
                condition,
                pk=row.pk,
                status=row.status,
                revision=row.revision,
                events_count=row.events_count,
            )
            .update(**changes, **head(event))
        )
        if moved:
            record_event(event)
        failpoints.reach("aside.before_commit")
        return bool(moved)

    moved = run_atomic(work, durable=durable)
    failpoints.reach("aside.after_commit")
    return moved


def _require_open(row: PendingInterrupt, *, in_time: bool = True) -> None:
    """Refuse rows that nobody can close any more.

    Raises:
        InterruptCancelled, InterruptExpired, TransitionNotAllowed
    """
    context: dict[str, Any] = {"interrupt_id": str(row.pk), "status": row.status}
    if row.status == InterruptStatus.CANCELLED:
        raise InterruptCancelled(**context)
    if row.status not in selectors.OPEN:
        raise TransitionNotAllowed(
            f"This is {row.get_status_display()}; there is nothing left to hold.",
            **context,
        )
    pending = row.status == InterruptStatus.PENDING
    over = row.expires_at is not None and row.expires_at <= _now(row)
    if in_time and pending and over:
        raise InterruptExpired(**context)


def _span(minutes: float | None) -> timedelta:
    if minutes is None:
        return hitl_settings.claim_for
    if not isinstance(minutes, bool) and 0 < minutes <= MAX_MINUTES:
        return timedelta(minutes=minutes)
    message = f"A claim is for more than 0 and at most {MAX_MINUTES} minutes."
    raise PayloadRejected(message, errors=[{"loc": "minutes", "message": message}])


def _now(row: PendingInterrupt) -> datetime:
    now: datetime = row.db_now  # type: ignore[attr-defined]
    return now


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _unsettled(interrupt_id: UUID | str) -> TransitionNotAllowed:
    return TransitionNotAllowed(
        "The row changed while yours was on its way; nothing was changed. Try again.",
        interrupt_id=str(interrupt_id),
    )

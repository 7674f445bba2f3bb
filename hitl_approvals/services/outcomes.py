"""report_outcome(): a remote agent says what came of the call that it fetched."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from django.db.models import Q

from hitl_approvals import canonical
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import Door, EventType, InterruptStatus, OutcomeStatus
from hitl_approvals.models import AgentClient, DbNow, PendingInterrupt
from hitl_approvals.services import clients, rows
from hitl_approvals.services.consuming import require_consumer
from hitl_approvals.services.events import interrupt_event
from hitl_approvals.services.remote import TRIES, is_fetched, move, read_own, unsettled
from hitl_approvals.text import cleaned
from hitl_approvals.types import ActorInfo, OutcomeReceipt

Outcome = Literal["succeeded", "failed", "unknown"]

OUTCOMES: tuple[Outcome, ...] = ("succeeded", "failed", "unknown")
MAX_ERROR = 4000
"""Characters that are kept of an error."""
_TOLD = (EventType.RESOLVED, EventType.IN_DOUBT, EventType.LATE_RESULT)
"""Events that may carry a report."""


def report_outcome(
    interrupt_id: UUID | str,
    *,
    client: AgentClient,
    key: str,
    status: Outcome,
    result: Any = None,
    error: str = "",
    via: str = Door.PYTHON,
) -> OutcomeReceipt:
    """Record what came of a call; once the request is in doubt or over, only note it.

    Joins the caller's transaction. The same report under the same key is stored once.
    A revoked client may still report: what it did must not be lost.

    Args:
        interrupt_id: The request.
        client: Who reports.
        key: The key under which the decision was fetched.
        status: `succeeded`; `failed`, which says that nothing happened; or `unknown`,
            which leaves it to a person.
        result: What the call returned, as JSON.
        error: What went wrong, for people.
        via: The door, for the audit trail.

    Raises:
        ValueError: There is no such status.
        InterruptNotFound: No such request, or it is another client's.
        TransitionNotAllowed: Nobody fetched it, or it is a turn's.
        AlreadyConsumed: It was fetched under another key.
        PayloadRejected: The result is not JSON, too large or too deep.
    """
    if status not in OUTCOMES:
        raise ValueError(f"An outcome is one of {', '.join(OUTCOMES)}; got {status!r}.")
    canonical.dumps(
        result,
        max_bytes=hitl_settings.max_payload_bytes,
        max_depth=hitl_settings.max_depth,
    )
    told = cleaned(error, MAX_ERROR)
    text = canonical.dumps([status, result, told], max_bytes=None, max_depth=None)
    detail = {"report": canonical.digest(text), "outcome": str(status), "note": told}
    actor = clients.actor_of_client(client, via)
    for _try in range(TRIES):
        row = read_own(interrupt_id, client)
        require_consumer(row, key)
        if (before := _reported(row, detail["report"])) is not None:
            late = before == EventType.LATE_RESULT
            return OutcomeReceipt(row.pk, row.status, late=late, replayed=True)
        if not is_fetched(row):
            if _note_late(row, actor, {**detail, "result": result}):
                return OutcomeReceipt(row.pk, row.status, late=True)
        elif after := _record(row, actor, status, result, detail):
            return OutcomeReceipt(row.pk, after)
    raise unsettled(interrupt_id)


def _reported(row: PendingInterrupt, digest: str) -> str | None:
    """Return the type of the event that carries this very report, if there is one."""
    told = rows.events().filter(subject_id=row.pk, type__in=_TOLD)
    for event in told.order_by("sequence"):
        if isinstance(event.detail, dict) and event.detail.get("report") == digest:
            return event.type
    return None


def _record(
    row: PendingInterrupt,
    actor: ActorInfo,
    status: Outcome,
    result: Any,
    detail: dict[str, str],
) -> str:
    """Move `decided → resolved` or `decided → in_doubt`; empty if the row moved."""
    doubt = status == "unknown"
    after = InterruptStatus.IN_DOUBT if doubt else InterruptStatus.RESOLVED
    changes: dict[str, Any] = {"status": after}
    if not doubt:
        changes |= {
            "outcome_status": OutcomeStatus(status),
            "outcome": _kept(status, result, detail["note"]),
            "resolved_at": DbNow(),
        }
    event = interrupt_event(
        row,
        EventType.IN_DOUBT if doubt else EventType.RESOLVED,
        actor=actor,
        at=row.db_now,  # type: ignore[attr-defined]
        status=after,
        digest_run=row.decision_digest,
        detail=detail,
    )
    fetched = Q(consumed_at__isnull=False, consume_key=row.consume_key)
    return str(after) if move(row, event, fetched, **changes) else ""


def _kept(status: Outcome, result: Any, error: str) -> Any:
    """Return what the row keeps: the result, or what went wrong."""
    return {"error": error} if status == "failed" and result is None else result


def _note_late(row: PendingInterrupt, actor: ActorInfo, detail: dict[str, Any]) -> bool:
    """Write down what was reported after somebody had dealt with it."""
    event = interrupt_event(
        row,
        EventType.LATE_RESULT,
        actor=actor,
        at=row.db_now,  # type: ignore[attr-defined]
        status=row.status,
        detail=detail,
    )
    return move(row, event, Q())

"""Approvals that go back to a person: `decided → pending`, a generation later."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q

from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import EventType, InterruptStatus, StepStatus
from hitl_approvals.models import (
    DbNow,
    InterruptEvent,
    PendingInterrupt,
    db_now_plus,
)
from hitl_approvals.services import rows
from hitl_approvals.services.events import SYSTEM, head, interrupt_event
from hitl_approvals.services.requests import Request

NOTHING_DECIDED: dict[str, Any] = {
    "decision": None,
    "decision_args_text": None,
    "decision_digest": "",
    "decision_value": None,
    "reason": "",
    "decided_by": None,
    "decided_by_label": "",
    "decided_via": "",
    "decided_at": None,
    "decision_key": None,
    "decision_body": "",
    "execute_by": None,
}
RENEWED = (
    "tool_description",
    "args_text",
    "args",
    "args_digest",
    "args_schema",
    "schema_digest",
    "allowed_decisions",
    "policy",
)
"""Columns that show the call as it stands now."""


@dataclass(slots=True)
class Reopening:
    """An approval that may not be used, for it was given for another state of things."""

    interrupt: PendingInterrupt
    why: str
    request: Request
    """The call as it stands now: what the person is shown this time."""


def lapse_row(row: PendingInterrupt, at: datetime) -> InterruptEvent | None:
    """Send an approval that was not used in time back to a person."""
    return _send_back(row, EventType.LAPSED, at, Q(execute_by__lte=DbNow()), {})


def reopen_row(one: Reopening, at: datetime) -> InterruptEvent | None:
    """Send an approval back that no longer fits, and show the call as it stands now."""
    changes = {name: one.request.fields[name] for name in RENEWED}
    return _send_back(one.interrupt, EventType.REOPENED, at, Q(), changes, why=one.why)


def _send_back(
    row: PendingInterrupt,
    type_: EventType,
    at: datetime,
    condition: Q,
    changes: dict[str, Any],
    **detail: Any,
) -> InterruptEvent | None:
    """Ask again, unless the call was begun or the row moved; then nothing happens."""
    event = interrupt_event(
        row,
        type_,
        actor=SYSTEM,
        at=at,
        status=InterruptStatus.PENDING,
        decision="",
        generation=row.generation + 1,
        revision=row.revision + 1,
        digest_shown=changes.get("args_digest", row.args_digest),
        execute_by=row.execute_by,
        detail={
            "decision": row.decision,
            "decided_by": row.decided_by_label,
            **detail,
        },
    )
    begun = rows.steps().filter(
        interrupt=OuterRef("pk"), generation=OuterRef("generation")
    )
    wait = row.policy.get("expires_in")
    fresh = hitl_settings.expires_in if wait is None else timedelta(seconds=wait)
    moved = (
        rows.interrupts()
        .filter(
            condition,
            pk=row.pk,
            status=InterruptStatus.DECIDED,
            generation=row.generation,
            events_count=row.events_count,
        )
        .exclude(Exists(begun.exclude(status=StepStatus.NOT_STARTED)))
        .update(
            status=InterruptStatus.PENDING,
            generation=row.generation + 1,
            revision=row.revision + 1,
            expires_at=None if fresh is None else db_now_plus(fresh),
            **NOTHING_DECIDED,
            **changes,
            **head(event),
        )
    )
    return event if moved else None

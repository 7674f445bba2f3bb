"""Counts down the open questions that a suspended turn waits for."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Case, F, Value, When

from hitl_approvals.enums import TurnStatus
from hitl_approvals.models import AgentTurn, DbNow
from hitl_approvals.services import rows

_ONE_LESS: dict[str, Any] = {
    "status": Case(
        When(undecided=1, then=Value(TurnStatus.READY.value)), default=F("status")
    ),
    "next_run_at": DbNow(),
    "dispatched_at": DbNow(),
    # MariaDB assigns from left to right: `undecided` must come last.
    "undecided": F("undecided") - 1,
}


def count_down(turn_id: UUID) -> bool:
    """Take one from a turn's open questions; after the last one a run is owed.

    Takes the turn's row, so that answers given at the same moment count one after the
    other.

    Returns:
        False if the turn does not wait.
    """
    waiting = rows.where(
        AgentTurn, pk=turn_id, status=TurnStatus.SUSPENDED, undecided__gt=0
    )
    return waiting.update(**_ONE_LESS) == 1

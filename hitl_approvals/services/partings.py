"""Cancelled turns whose workflow may still wait in an engine, until it is known not to.

The cancellation is the note itself: its transaction leaves `next_run_at` set on the turn,
and nothing else reads that of a turn that is over. NULL means that nothing is open.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from hitl_approvals.enums import TurnStatus
from hitl_approvals.models import AgentTurn, DbNow, db_now_plus
from hitl_approvals.registry import registry
from hitl_approvals.services import rows
from hitl_approvals.services.transactions import run_atomic

OF_ITS_OWN = frozenset(
    {"function", "graph", "langgraph", "pydantic_ai", "openai_agents", "request"}
)
"""Kinds of agent that nothing performs but our workers; any other may have an engine."""
LEASE = timedelta(minutes=1)
"""What one try may take before somebody else makes another; two at once do no harm."""
SHORTEST, LONGEST = timedelta(seconds=1), timedelta(minutes=10)
"""Between two tries. Each wait is a tenth of the time since the turn was cancelled."""
LATE_START = timedelta(minutes=10)
"""So long a worker that was about to start something when the turn ended may still do so.

Only asked where the engine cannot keep the id of what was not started."""
OPEN = "Cancelled here, but perhaps not everywhere."
"""How the last error of such a turn begins."""


def note(turn: AgentTurn) -> dict[str, Any]:
    """Return what the statement that cancels a turn leaves on it.

    An agent that this process does not know may have an engine: whoever knows it looks.
    One whose kind has none may have had another when it was paused.
    """
    definition = registry.agents.get(turn.agent)
    if (
        definition is not None
        and definition.kind in OF_ITS_OWN
        and not left_of_another_kind(turn, definition.kind)
    ):
        return {"next_run_at": None}
    return {"next_run_at": DbNow(), "dispatched_at": DbNow(), "hints": 0}


def left_of_another_kind(turn: AgentTurn, kind: str) -> str:
    """Return what is open of a workflow that an agent of this kind cannot end.

    Empty if the turn follows none, or one of this kind.
    """
    state = turn.state if isinstance(turn.state, dict) else {}
    data, paused_by = state.get("data"), state.get("framework", kind)
    if paused_by in {kind, *OF_ITS_OWN}:
        return ""
    if not isinstance(data, dict) or "workflow" not in data:
        return ""
    return (
        f"The workflow {data['workflow']} is of kind {paused_by!r}, which agent "
        f"`{turn.agent}` has no more: end it there by hand, or register the agent under "
        "that kind until it is over."
    )


def note_again(turn_id: UUID) -> None:
    """Have somebody look after a cancelled turn for which something was started late."""
    late = rows.turns().filter(pk=turn_id, status=TurnStatus.CANCELLED)
    run_atomic(lambda: late.update(next_run_at=DbNow(), dispatched_at=None, hints=0))


def is_noted(turn: AgentTurn) -> bool:
    """Tell whether something of a cancelled turn may be open outside."""
    return turn.status == TurnStatus.CANCELLED and turn.next_run_at is not None


def unsettled() -> QuerySet[AgentTurn]:
    """Return the cancelled turns whose workflow is not known to be over."""
    return rows.turns().filter(status=TurnStatus.CANCELLED, next_run_at__isnull=False)


def due() -> QuerySet[AgentTurn]:
    """Return those that somebody should look after now."""
    return unsettled().filter(next_run_at__lte=DbNow())


def due_to(agents: Iterable[str], *, limit: int = 50) -> list[UUID]:
    """Return those that are due and of these agents, the longest due first."""
    found = due().filter(agent__in=list(agents)).order_by("next_run_at", "pk")
    return list(found.values_list("pk", flat=True)[:limit])


def take(turn_id: UUID, agents: Iterable[str]) -> AgentTurn | None:
    """Take a turn for one try; None if there is nothing to do here and now."""
    mine = due().filter(pk=turn_id, agent__in=list(agents))
    # Looked at first: where a database has one writer, nobody must ask for it in vain.
    if not mine.exists():
        return None
    if not run_atomic(lambda: mine.update(next_run_at=db_now_plus(LEASE))):
        return None
    return rows.turns().annotate(db_now=DbNow()).get(pk=turn_id)


def settle(turn: AgentTurn) -> None:
    """Note that nothing of the turn is open any more, and take back what was said of it."""
    said = {"last_error": ""} if turn.last_error.startswith(OPEN) else {}
    run_atomic(
        lambda: _as_taken(turn).update(
            next_run_at=None, dispatched_at=None, hints=0, **said
        )
    )


def put_off(turn: AgentTurn, why: str) -> None:
    """Say what is still open, and have somebody look again later."""
    waits = min(max(age_of(turn) / 10, SHORTEST), LONGEST)
    run_atomic(
        lambda: _as_taken(turn).update(
            next_run_at=db_now_plus(waits),
            dispatched_at=None,
            hints=0,
            last_error=f"{OPEN} {why}",
        )
    )


def _as_taken(turn: AgentTurn) -> QuerySet[AgentTurn]:
    """Return the turn unless it was noted again: what was seen is older than that."""
    return unsettled().filter(pk=turn.pk, next_run_at=turn.next_run_at)


def age_of(turn: AgentTurn) -> timedelta:
    """Return how long ago a turn that `take` returned was cancelled."""
    now: Any = turn.db_now  # type: ignore[attr-defined]
    span: timedelta = now - (turn.finished_at or now)
    return max(span, timedelta())

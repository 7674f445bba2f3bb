"""One turn of a thread at a time: who waits, and who is next."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from hitl_approvals.enums import TurnStatus
from hitl_approvals.models import AgentTurn, DbNow
from hitl_approvals.services import rows
from hitl_approvals.services.hints import wake


def _oldest(turns: QuerySet[AgentTurn]) -> QuerySet[AgentTurn, UUID]:
    return turns.order_by("created_at", "pk").values_list("pk", flat=True)


def unblock_oldest(thread_key: str) -> bool:
    """Let the oldest waiting turn of a thread try again; needless calls are harmless."""
    oldest = rows.where(
        AgentTurn, thread_key=thread_key, blocked=True, status=TurnStatus.READY
    ).first(_oldest)
    if oldest is None:
        return False
    freed = (
        rows.turns()
        .filter(pk=oldest, blocked=True, status=TurnStatus.READY)
        .update(blocked=False, next_run_at=DbNow(), dispatched_at=DbNow())
    )
    if freed:
        wake(oldest)
    return bool(freed)


def unblock_orphans() -> int:
    """Unblock the oldest waiting turn of every thread that no turn holds or is to get.

    A holder may have ended between a claim that failed on it and the flag that the
    claim then wrote; nobody else would ever look at that turn again.
    """
    holder = rows.turns().filter(active_thread=OuterRef("thread_key"))
    # Nobody holds a thread whose next turn waits for a worker; who came later than that
    # one must not be claimed before it.
    next_one = rows.turns().filter(
        thread_key=OuterRef("thread_key"), status=TurnStatus.READY, blocked=False
    )
    waiting = (
        rows.turns()
        .filter(blocked=True, status=TurnStatus.READY)
        .exclude(Exists(holder))
        .exclude(Exists(next_one))
        .values_list("thread_key", flat=True)
        .distinct()
    )
    return sum(unblock_oldest(key) for key in list(waiting[:200]))

"""Turns that begin with one call: asked for by code, decided before anything runs."""

from __future__ import annotations

from hitl_approvals import failpoints
from hitl_approvals.enums import EventType
from hitl_approvals.models import AgentTurn
from hitl_approvals.services import queues, rows, starting
from hitl_approvals.services.clock import DbClock
from hitl_approvals.services.events import actor_of, interrupt_event
from hitl_approvals.services.recording import record_event
from hitl_approvals.services.requests import Request
from hitl_approvals.services.run import Run
from hitl_approvals.services.suspension import row_of
from hitl_approvals.services.transactions import alias, run_atomic
from hitl_approvals.types import Person


def unwritten(turn: AgentTurn) -> Run:
    """Return the run of a turn that has no row yet, for its call to be read with."""
    return Run(turn=turn, fence=0, clock=DbClock(queues.read_now()))


def begin(
    run: Run,
    request: Request | None,
    *,
    thread_id: str | None,
    by: Person | None,
    via: str,
) -> AgentTurn:
    """Write the turn: suspended with the call pending, or owed if nobody has to decide.

    Joins the caller's transaction. A turn that has the same start key is found instead.

    Args:
        run: Of `unwritten`.
        request: The call, unless it may run without a person.
        thread_id: The conversation; None makes the turn its own.
        by: Who asks, for the audit trail; None is trusted code.
        via: The door, for the audit trail.

    Raises:
        KeyReused: The key stands for another request.
        PayloadRejected: The thread's name cannot be stored.
        ThreadBusy: `THREAD_POLICY` is `refuse` and the thread has an open turn.
    """
    turn = run.turn
    known = queues.known({request.queue} if request and request.queue else ())
    at = run.clock.now()

    def work() -> AgentTurn:
        turn.blocked = False
        starting.enter_thread(turn, thread_id)
        if request is None:
            starting.owe(turn)
            return starting.insert(turn)[0]
        starting.wait_for(turn, 1)
        written, made = starting.insert(turn)
        if not made:
            return written
        row = row_of(run, request, known)
        event = interrupt_event(
            row,
            EventType.RAISED,
            actor=actor_of(by, via),
            at=at,
            status=row.status,
            detail={"tool": row.tool_name, "queue": row.queue_id},
        )
        row.events_head, row.events_count = event.hash, 1
        row.save(using=alias(), force_insert=True)
        record_event(event)
        failpoints.reach("request.before_commit")
        return rows.turns().get(pk=turn.pk)

    made = run_atomic(work)
    failpoints.reach("request.after_commit")
    return made

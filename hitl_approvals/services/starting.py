"""Turns are born here: claimed by the caller, owed to a worker, or waiting in a thread."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import uuid4

from django.db import IntegrityError

from hitl_approvals import canonical
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import OPEN_TURN, Door, TurnStatus
from hitl_approvals.exceptions import (
    KeyReused,
    PayloadRejected,
    ThreadBusy,
    TransitionNotAllowed,
)
from hitl_approvals.models import AgentTurn, DbNow, db_now_plus
from hitl_approvals.services import rows
from hitl_approvals.services.clock import DbClock
from hitl_approvals.services.control import cancel
from hitl_approvals.services.hints import wake
from hitl_approvals.services.run import Run
from hitl_approvals.services.transactions import may_be_refused
from hitl_approvals.text import storable
from hitl_approvals.types import Person


def create(
    *,
    agent: str,
    agent_version: str,
    input: Any,  # noqa: A002  the word of the design
    thread_id: str | None = None,
    key: str | None = None,
    requested_by: Person | None = None,
    execute_options: Any = None,
    claimed: bool = False,
) -> tuple[AgentTurn, bool]:
    """Insert a turn, claimed by the caller or owed to any worker.

    Joins the caller's transaction. The same `key` with the same content finds the turn
    that is there.

    Returns:
        The turn, and whether it was made now.

    Raises:
        KeyReused: The key stands for another request.
        PayloadRejected: Input or options are not JSON, too large or too deep, or the
            thread's name cannot be stored.
        ThreadBusy: `THREAD_POLICY` is `refuse` and the thread has an open turn.
    """
    limits = {
        "max_bytes": hitl_settings.max_payload_bytes,
        "max_depth": hitl_settings.max_depth,
    }
    label = requested_by.get_username() if requested_by is not None else ""
    body = canonical.dumps([agent, input, thread_id, execute_options, label], **limits)
    turn = AgentTurn(
        agent=agent,
        agent_version=agent_version,
        input=input,
        execute_options=execute_options,
        start_key=None if key is None else canonical.key_digest("start", key),
        start_digest=canonical.digest(body),
        max_attempts=hitl_settings.max_attempts,
        requested_by_id=None if requested_by is None else requested_by.pk,
        requested_by_label=label[:255],
    )
    enter_thread(turn, thread_id)
    if claimed and not turn.blocked:
        turn.status = TurnStatus.RUNNING
        turn.fence = turn.attempts = 1
        turn.active_thread = turn.thread_key
        turn.lease_token = uuid4()
        turn.lease_until = db_now_plus(hitl_settings.lease)
    else:
        owe(turn)
    return insert(turn)


def owe(turn: AgentTurn) -> None:
    """Let a new turn begin as owed to whoever claims it."""
    turn.next_run_at = turn.dispatched_at = DbNow()


def wait_for(turn: AgentTurn, undecided: int) -> None:
    """Let a new turn begin suspended, with interrupts that are written beside it.

    It holds its thread like any other that waits, unless somebody else does: then its
    claim will find that out.
    """
    turn.status = TurnStatus.SUSPENDED
    turn.undecided = undecided
    turn.active_thread = None if turn.blocked else turn.thread_key
    turn.blocked = False


def insert(turn: AgentTurn) -> tuple[AgentTurn, bool]:
    """Write a new turn, and announce it if a run is owed.

    Returns:
        The turn and whether it was made now; else the one that has its start key.

    Raises:
        KeyReused: The key stands for another request.
        ThreadBusy: `THREAD_POLICY` is `refuse` and the thread has an open turn.
    """
    try:
        with may_be_refused():
            rows.insert([turn])
    except IntegrityError as error:
        return _collided(turn, error)
    if turn.status == TurnStatus.READY and not turn.blocked:
        wake(turn.pk)
    return turn, True


def enter_thread(turn: AgentTurn, thread_id: str | None) -> None:
    """Name the thread of a new turn, None its own, and apply the policy of the site.

    Raises:
        PayloadRejected: The thread's name cannot be stored.
    """
    if thread_id is not None and not (storable(thread_id) and len(thread_id) <= 255):
        raise PayloadRejected(
            "A thread's name has at most 255 characters, none of them NUL or half of a "
            "surrogate pair; nothing was stored.",
            errors=[{"loc": "thread_id", "message": "Use a shorter, plain name."}],
        )
    turn.thread_id = thread_id or str(turn.pk)
    turn.thread_key = canonical.key_digest("thread", turn.thread_id)
    if thread_id is not None:
        _apply_policy(turn)


def _apply_policy(turn: AgentTurn) -> None:
    """Do what the site wants with input that comes while the thread is busy."""
    policy = hitl_settings.thread_policy
    if policy == "refuse":
        # Taken at once: the unique column decides between two that come together.
        turn.active_thread = turn.thread_key
        return
    before = rows.turns().filter(thread_key=turn.thread_key, status__in=OPEN_TURN)
    if policy == "cancel":
        for turn_id in list(before.values_list("pk", flat=True)):
            with suppress(TransitionNotAllowed):
                cancel(turn_id, by=None, via=Door.SYSTEM, reason="new input came")
    else:
        # First in, first out: whoever is here already goes first.
        turn.blocked = before.exists()


def started_with(start_key: str | None, start_digest: str) -> AgentTurn | None:
    """Return the turn that a start key made already.

    Raises:
        KeyReused: The key stands for another request.
    """
    if start_key is None:
        return None
    found = rows.turns().filter(start_key=start_key).first()
    if found is not None and found.start_digest != start_digest:
        raise KeyReused(
            "This key already started another turn; use a new key.",
            turn_id=str(found.pk),
        )
    return found


def _collided(turn: AgentTurn, error: IntegrityError) -> tuple[AgentTurn, bool]:
    """Find whether the start key or the thread was taken, and answer accordingly."""
    found = started_with(turn.start_key, turn.start_digest)
    if found is not None:
        return found, False
    if hitl_settings.thread_policy == "refuse":
        raise ThreadBusy(
            "Another turn of this thread is not over yet; nothing was started.",
            thread_id=turn.thread_id,
        ) from error
    if turn.active_thread is None:
        raise error
    if turn.status == TurnStatus.SUSPENDED:
        # It only waits for people yet; whoever claims it later waits for the thread.
        turn.active_thread = None
        with may_be_refused():
            rows.insert([turn])
        return turn, True
    # The thread is busy: the turn waits its turn like any other.
    turn.status = TurnStatus.READY
    turn.fence = turn.attempts = 0
    turn.active_thread = turn.lease_token = turn.lease_until = None
    turn.next_run_at = turn.dispatched_at = DbNow()
    turn.blocked = True
    with may_be_refused():
        rows.insert([turn])
    return turn, True


def adopt(turn: AgentTurn) -> Run:
    """Return the run of a turn that was just created as claimed.

    The agent is asked what the row holds, as it will be when the turn is resumed.
    """
    turn.input, turn.execute_options = (
        canonical.stored(canonical.dumps(one, max_bytes=None, max_depth=None))
        for one in (turn.input, turn.execute_options)
    )
    return Run(turn=turn, fence=turn.fence, clock=DbClock(turn.created_at))

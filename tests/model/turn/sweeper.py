"""What time alone moves: the sweeper's passes over one turn."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.explore import SYSTEM, TROUBLE, Move
from tests.model.turn import labels
from tests.model.turn.rules import Rules
from tests.model.turn.state import (
    ASKED,
    CLOSED,
    DECIDED,
    IDLE,
    MAY_RUN,
    NEEDS_ATTENTION,
    NONE,
    NOT_STARTED,
    PENDING,
    READY,
    RUNNING,
    STARTED,
    SUSPENDED,
    Call,
    Draft,
    State,
)

Moves = Iterator[Move[State]]


def sweep(rules: Rules, state: State) -> Moves:
    """Make every move that one pass may make."""
    if state.turn == READY:
        yield from _owed(rules, state)
        yield from _lapse(rules, state)
    elif state.turn == RUNNING:
        yield from _revoke(rules, state)
    elif state.turn == NEEDS_ATTENTION or state.turn in CLOSED:
        yield from _doubt(rules, state)


def _owed(rules: Rules, state: State) -> Moves:
    if not state.hint and not rules.lacks("announce"):
        draft = Draft(state)
        draft.hint = True
        yield Move(SYSTEM, labels.ANNOUNCES, "sweeper", draft.frozen())
    if state.oddities:
        draft = Draft(state)
        draft.oddities -= 1
        draft.turn, draft.hint = NEEDS_ATTENTION, False
        yield Move(TROUBLE, labels.UNCLAIMED, "sweeper", draft.frozen())


def _lapse(rules: Rules, state: State) -> Moves:
    due = [
        index
        for index, call in enumerate(state.calls)
        if call.late and is_unused(rules, call)
    ]
    if due:
        draft = Draft(state)
        send_back(draft, due)
        draft.turn, draft.undecided, draft.hint = SUSPENDED, len(due), False
        yield Move(SYSTEM, labels.LAPSES, "sweeper", rules.sealed(draft))


def is_unused(rules: Rules, call: Call) -> bool:
    """Tell whether a call may be sent back: it is approved, and nothing was begun."""
    unused = call.steps[-1].status in (NONE, NOT_STARTED)
    return (
        call.interrupt == DECIDED
        and call.decision in MAY_RUN
        and (unused or rules.lacks("lapse_asks_step"))
    )


def send_back(draft: Draft, calls: list[int]) -> None:
    """Reopen unused approvals; a forgery of what was asked for stays where it is."""
    for index in calls:
        call = draft.calls[index]
        draft.reopen(
            index,
            interrupt=PENDING,
            decision=NONE,
            decisions=0,
            authorized=call.authorized - 1,
            forged=call.forged if call.forged == ASKED else NONE,
        )


def _revoke(rules: Rules, state: State) -> Moves:
    if rules.lacks("revoke"):
        return
    alive = any(worker.current and worker.phase != IDLE for worker in state.workers)
    if alive and not state.zombies:
        return
    draft = Draft(state)
    draft.zombies -= alive
    if not rules.lacks("revoke_raises_fence"):
        draft.outdate()
    rules.release(draft)
    who = "sweeper, the worker lives on" if alive else "sweeper"
    yield Move(TROUBLE if alive else SYSTEM, labels.REVOKES, who, rules.sealed(draft))


def hold(rules: Rules, state: State) -> Moves:
    """Stop what would go on by itself, as an operator does after a failover."""
    alive = any(worker.current and worker.phase != IDLE for worker in state.workers)
    if state.turn in (READY, RUNNING) and state.oddities and state.zombies >= alive:
        draft = Draft(state)
        draft.oddities -= 1
        draft.zombies -= alive
        draft.outdate()
        draft.turn, draft.hint = NEEDS_ATTENTION, False
        yield Move(TROUBLE, labels.HOLDS, "olga", rules.sealed(draft))


def _doubt(rules: Rules, state: State) -> Moves:
    if rules.lacks("sweep_doubts"):
        return
    for index, call in enumerate(state.calls):
        status = call.steps[-1].status
        if (
            status == STARTED
            and call.interrupt in (DECIDED, NONE)
            and (
                rules.deadline_passed(state, index, len(call.steps) - 1)
                or rules.lacks("doubts_wait")
            )
        ):
            draft = Draft(state)
            rules.put_in_doubt(draft, index)
            yield Move(SYSTEM, labels.DOUBTS, f"sweeper {index}", rules.sealed(draft))

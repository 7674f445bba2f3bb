"""What a worker does in a call's body and after it: the effect, then the record."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.explore import SYSTEM, TROUBLE, Move
from tests.model.turn import labels
from tests.model.turn.rules import Rules
from tests.model.turn.script import IDEMPOTENT, UNSAFE
from tests.model.turn.state import (
    BODY,
    CLOSED,
    DECIDED,
    DONE,
    DOUBT,
    FOUND,
    IDLE,
    LATER,
    NOBODY,
    NONE,
    NOT_STARTED,
    PLAIN,
    STARTED,
    STEP_FAILED,
    SUCCEEDED,
    Draft,
    State,
    Worker,
)

Moves = Iterator[Move[State]]


def owns_step(rules: Rules, state: State, number: int, worker: Worker) -> bool:
    """Tell whether a worker's record finds step and interrupt as it left them."""
    call = state.calls[worker.at]
    status, owner, _effects = call.steps[worker.generation]
    newest = worker.generation == len(call.steps) - 1
    behind = worker.behind >> worker.at & 1 and rules.lacks("record_reads_chain")
    return (
        (status == STARTED or rules.lacks("record_asks_started"))
        and (owner == number or rules.lacks("record_asks_fence"))
        and (newest or rules.lacks("record_asks_generation"))
        and (call.interrupt in (DECIDED, NONE) or rules.lacks("record_asks_decided"))
        and not behind
    )


def note_succeeded(
    rules: Rules, draft: Draft, index: int, generation: int, status: str = SUCCEEDED
) -> None:
    draft.step(index, status, NOBODY, generation)
    rules.resolve(draft, index)


def note_never_started(
    rules: Rules, state: State, draft: Draft, number: int, worker: Worker
) -> None:
    """Free the approval again; in a closed turn nobody will use it any more.

    Not after a repeat: an earlier start of the call may have acted.
    """
    repeated = worker.phase == BODY and worker.notes[worker.at] == FOUND
    if repeated and not rules.lacks("repeat_may_have_acted"):
        return
    own = owns_step(rules, state, number, worker)
    if own:
        draft.step(worker.at, NOT_STARTED, NOBODY, worker.generation)
    if not own and not rules.lacks("never_started_asks_fence"):
        return
    closed = state.turn in CLOSED and not rules.lacks("never_started_withdraws")
    if closed and state.calls[worker.at].interrupt == DECIDED:
        rules.withdraw(draft, worker.at)


def go_on_or_stop(
    rules: Rules,
    state: State,
    draft: Draft,
    number: int,
    at: int,
    *,
    stop: bool = False,
) -> None:
    """Let a worker go on to the next call, if the turn is its own still."""
    worker = state.workers[number]
    draft.disown(number)
    if draft.workers[number].notes[worker.at] == FOUND:
        rules.note(draft, number, worker.at, PLAIN)
    if stop or not rules.owns_turn(state, worker):
        draft.stop(number)
    else:
        rules.go_on(draft, number, at, rules.script.batch_of[worker.at])


def in_body(rules: Rules, state: State, number: int, worker: Worker) -> Moves:
    """Act, or end in one of the ways in which a body may end."""
    index, generation = worker.at, worker.generation
    keyed = rules.modes[index] == IDEMPOTENT
    who = f"w{number} {index}"
    draft = Draft(state)
    draft.act(index, generation, keyed=keyed)
    draft.worker(number, phase=DONE)
    yield Move(SYSTEM, labels.ACTS, who, rules.sealed(draft))
    if not state.oddities:
        return

    for label in (labels.RAISES_BEFORE, labels.RAISES_AFTER):
        draft = Draft(state)
        draft.oddities -= 1
        if label == labels.RAISES_AFTER:
            draft.act(index, generation, keyed=keyed)
        unsafe = rules.modes[index] == UNSAFE
        rules.note(draft, number, index, DOUBT if unsafe else LATER)
        go_on_or_stop(rules, state, draft, number, index + 1)
        yield Move(TROUBLE, label, who, rules.sealed(draft))

    # Under a key that was used before, the other side would not say that.
    if not state.calls[index].steps[generation].effects:
        draft = Draft(state)
        draft.oddities -= 1
        recorded = owns_step(rules, state, number, worker)
        if recorded:
            note_succeeded(rules, draft, index, generation, STEP_FAILED)
        go_on_or_stop(rules, state, draft, number, index + 1, stop=not recorded)
        yield Move(TROUBLE, labels.TOOL_FAILED, who, rules.sealed(draft))

    draft = Draft(state)
    draft.oddities -= 1
    note_never_started(rules, state, draft, number, worker)
    rules.note(draft, number, index, LATER)
    go_on_or_stop(rules, state, draft, number, index + 1)
    yield Move(TROUBLE, labels.NEVER_STARTED, who, rules.sealed(draft))


def record(rules: Rules, state: State, number: int, worker: Worker) -> Moves:
    """Record the call and resolve its interrupt, or only note that this is too late."""
    index, generation = worker.at, worker.generation
    draft = Draft(state)
    recorded = owns_step(rules, state, number, worker)
    if recorded:
        note_succeeded(rules, draft, index, generation)
    elif rules.lacks("record_reads_chain") or rules.lacks("close_reads_chain"):
        for other, one in enumerate(state.workers):
            if other != number and one.phase != IDLE:
                draft.worker(other, behind=one.behind | 1 << index)
    go_on_or_stop(rules, state, draft, number, index + 1, stop=not recorded)
    label = labels.RECORDS if recorded else labels.TOO_LATE
    yield Move(SYSTEM, label, f"w{number} {index}", rules.sealed(draft))

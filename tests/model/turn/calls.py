"""What a worker does with one call: the gate, and what a predecessor left behind."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.explore import SYSTEM, TROUBLE, Move
from tests.model.turn import labels
from tests.model.turn.leaving import needs_attention, puts_off, raises, stops
from tests.model.turn.performing import (
    go_on_or_stop,
    note_never_started,
    note_succeeded,
    owns_step,
)
from tests.model.turn.rules import Rules
from tests.model.turn.script import IDEMPOTENT, LOOKUP, TRANSACTIONAL
from tests.model.turn.state import (
    BODY,
    DECIDED,
    DOUBT,
    EDIT,
    FOUND,
    FOUND_ABSENT,
    FOUND_DONE,
    LAPSED,
    LATER,
    PLAIN,
    STARTED,
    STEP_FAILED,
    SUCCEEDED,
    Draft,
    State,
    Worker,
)

Moves = Iterator[Move[State]]


def at_call(rules: Rules, state: State, number: int, worker: Worker) -> Moves:
    """Begin the call at which a worker is, or deal with the start it found."""
    index = worker.at
    if not rules.owns_turn(state, worker):
        yield stops(rules, state, number)
        return
    if state.oddities:
        yield raises(rules, state, number)
    looks = worker.notes[index] == FOUND and rules.modes[index] == LOOKUP
    forged = worker.forged >> index & 1
    if forged and not looks and not rules.lacks("gate_compares"):
        yield needs_attention(rules, state, number, labels.FORGERY_FOUND)
    elif looks:
        yield from _ask_other_side(rules, state, number, index)
    elif worker.notes[index] == FOUND:
        yield from _start_again(rules, state, number, index)
    elif state.calls[index].late and not rules.lacks("gate_asks_time"):
        yield _noted(rules, state, number, LAPSED, SYSTEM, labels.LATE_AT_GATE)
    else:
        yield from _begin(rules, state, number, index)


def _begin(rules: Rules, state: State, number: int, index: int) -> Moves:
    if state.reopenings and state.calls[index].interrupt == DECIDED:
        # The tool takes other arguments by now, or its precondition fails.
        spent = state._replace(reopenings=state.reopenings - 1)
        yield _noted(rules, spent, number, LAPSED, TROUBLE, labels.WORLD_CHANGED)
    if rules.modes[index] == TRANSACTIONAL:
        yield from _transaction(rules, state, number, index)
    else:
        draft = Draft(state)
        _start(rules, draft, number, index)
        who = f"w{number} {index}"
        yield Move(SYSTEM, labels.GATE, who, rules.sealed(draft))


def _noted(
    rules: Rules, state: State, number: int, what: str, kind: str, label: str
) -> Move[State]:
    """Leave a call for the end of its batch."""
    draft = Draft(state)
    index = state.workers[number].at
    rules.note(draft, number, index, what)
    rules.go_on(draft, number, index + 1, rules.script.batch_of[index])
    return Move(kind, label, f"w{number} {index}", rules.sealed(draft))


def _start(rules: Rules, draft: Draft, number: int, index: int) -> None:
    """Commit a start. A call found started stays noted as such through its body."""
    _check_start(rules, draft, number, index)
    if not rules.lacks("gate_flushes"):
        rules.flush(draft, number)
    draft.step(index, STARTED, number)
    draft.call(index, late=False)
    draft.worker(number, phase=BODY, generation=len(draft.calls[index].steps) - 1)


def _check_start(rules: Rules, draft: Draft, number: int, index: int) -> None:
    """Note what is wrong with a start: only mutants come to this."""
    call = draft.calls[index]
    forged = draft.workers[number].forged >> index & 1
    if forged or (call.decision == EDIT and rules.lacks("gate_runs_edit")):
        draft.flaw = labels.RUNS_FORGED
    if call.late:
        draft.flaw = labels.LATE_AT_GATE


def _transaction(rules: Rules, state: State, number: int, index: int) -> Moves:
    who = f"w{number} {index}"
    for succeeded in (True, False) if state.oddities else (True,):
        draft = Draft(state)
        _check_start(rules, draft, number, index)
        rules.flush(draft, number)
        draft.step(index, SUCCEEDED if succeeded else STEP_FAILED)
        if succeeded:
            draft.act(index, -1)
        rules.resolve(draft, index)
        draft.oddities -= not succeeded
        rules.go_on(draft, number, index + 1, rules.script.batch_of[index])
        kind = SYSTEM if succeeded else TROUBLE
        label = labels.TRANSACTION if succeeded else labels.TRANSACTION_FAILED
        yield Move(kind, label, who, rules.sealed(draft))
    if state.oddities:
        later = _noted(
            rules,
            state._replace(oddities=state.oddities - 1),
            number,
            LATER,
            TROUBLE,
            labels.TRANSACTION_PUT_OFF,
        )
        yield later


def _start_again(rules: Rules, state: State, number: int, index: int) -> Moves:
    """Call under the same key again; a mutant does so without one."""
    moved = state.calls[index].steps[-1].status != STARTED
    if not moved or rules.lacks("again_asks_row"):
        draft = Draft(state)
        _start(rules, draft, number, index)
        who = f"w{number} {index}"
        yield Move(SYSTEM, labels.AGAIN, who, rules.sealed(draft))
    else:
        yield puts_off(rules, state, number, labels.TAKEN)
    if rules.modes[index] == IDEMPOTENT:
        # The other side does not honor the key any more.
        yield _noted(rules, state, number, DOUBT, TROUBLE, labels.CANNOT_ASK)


def _ask_other_side(rules: Rules, state: State, number: int, index: int) -> Moves:
    step = state.calls[index].steps[-1]
    generation = len(state.calls[index].steps) - 1
    if rules.deadline_passed(state, index, generation) or rules.lacks("lookup_waits"):
        phase, label = (
            (FOUND_DONE, labels.LOOKS_UP)
            if step.effects
            else (FOUND_ABSENT, labels.LOOKS_IN_VAIN)
        )
        if step.status == STARTED or rules.lacks("take_over_asks_row"):
            draft = Draft(state)
            rules.flush(draft, number)
            draft.step(index, STARTED, number)
            rules.note(draft, number, index, PLAIN)
            draft.worker(number, phase=phase, generation=generation)
            yield Move(SYSTEM, label, f"w{number} {index}", rules.sealed(draft))
        else:
            yield stops(rules, state, number, labels.ROWS_MOVED)
        yield _noted(rules, state, number, DOUBT, TROUBLE, labels.CANNOT_ASK)
    yield _noted(rules, state, number, LATER, TROUBLE, labels.TOO_EARLY)


def take_over(rules: Rules, state: State, number: int, worker: Worker) -> Moves:
    """Record of a call that was taken over what the other side says of it."""
    index = worker.at
    draft = Draft(state)
    if worker.phase == FOUND_DONE:
        label = labels.RECORDS_FOUND
        recorded = owns_step(rules, state, number, worker)
        if recorded:
            note_succeeded(rules, draft, index, worker.generation)
        go_on_or_stop(rules, state, draft, number, index + 1, stop=not recorded)
    else:
        label = labels.RECORDS_ABSENT
        note_never_started(rules, state, draft, number, worker)
        # Still at the same call, which is to be started now.
        go_on_or_stop(rules, state, draft, number, index)
    yield Move(SYSTEM, label, f"w{number} {index}", rules.sealed(draft))

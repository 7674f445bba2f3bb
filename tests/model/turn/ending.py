"""The end of a batch: one fenced transaction that decides by the rows as they are."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.explore import SYSTEM, Move
from tests.model.turn import labels
from tests.model.turn.leaving import puts_off, stops
from tests.model.turn.rules import Rules
from tests.model.turn.state import (
    DECIDED,
    DOUBT,
    LAPSED,
    NONE,
    PENDING,
    STARTED,
    SUSPENDED,
    Draft,
    State,
    Worker,
)
from tests.model.turn.sweeper import is_unused, send_back


def end_batch(
    rules: Rules, state: State, number: int, worker: Worker
) -> Iterator[Move[State]]:
    """Suspend if anything waits for a person, else put the rest off or go on."""
    if not rules.owns_turn(state, worker):
        yield stops(rules, state, number)
        return
    batch = rules.script.batch_of[worker.at - 1]
    calls = range(rules.script.begins[batch], worker.at)
    new = [i for i in calls if rules.asks(i) and state.calls[i].interrupt == NONE]
    doubts = [i for i in calls if worker.notes[i] == DOUBT]
    lapsed = [i for i in calls if worker.notes[i] == LAPSED]
    if new and rules.lacks("doubts_with_requests"):
        doubts = []
    if new or doubts or lapsed:
        yield _suspends(rules, state, number, batch, new, doubts, lapsed)
    else:
        yield puts_off(rules, state, number, labels.DEFERS)


def _suspends(
    rules: Rules,
    state: State,
    number: int,
    batch: int,
    new: list[int],
    doubts: list[int],
    lapsed: list[int],
) -> Move[State]:
    draft = Draft(state)
    rules.flush(draft, number)
    unused = [i for i in lapsed if is_unused(rules, state.calls[i])]
    send_back(draft, unused)
    waiting = len(unused) + len(new)
    for index in new:
        draft.call(index, interrupt=PENDING)
    for index in doubts:
        call = state.calls[index]
        started = call.steps[-1].status == STARTED
        if rules.lacks("end_reads"):
            started = True
        elif call.interrupt == DECIDED and not started:
            # The call turned out never to have been started. The next run sees that.
            return stops(rules, state, number, labels.ROWS_MOVED)
        if started:
            rules.put_in_doubt(draft, index)
            waiting += 1
    if waiting:
        draft.stop(number)
        draft.turn, draft.undecided, draft.attempts = SUSPENDED, waiting, 0
        label = labels.SUSPENDS
    else:
        rules.read_rows(draft, number)
        rules.enter(draft, number, batch)
        label = labels.NOTHING_OPEN
    return Move(SYSTEM, label, f"w{number}", rules.sealed(draft))

"""What a worker does between calls: claims, lets the agent's code run, dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.model.explore import SYSTEM, TROUBLE, Move
from tests.model.turn import labels
from tests.model.turn.calls import at_call, take_over
from tests.model.turn.ending import end_batch
from tests.model.turn.leaving import closes, needs_attention, raises, stops
from tests.model.turn.performing import in_body, record
from tests.model.turn.rules import Rules
from tests.model.turn.state import (
    AGENT,
    BODY,
    CALL,
    COMPLETED,
    DONE,
    END,
    FAILED,
    FOUND_ABSENT,
    FOUND_DONE,
    IDLE,
    NONE,
    READY,
    RUNNING,
    Draft,
    State,
    Worker,
)

Moves = Iterator[Move[State]]


def work(rules: Rules, state: State) -> Moves:
    """Make every move that one of the two workers may make."""
    for number, worker in enumerate(state.workers):
        if worker.phase == IDLE:
            # Two idle workers are the same.
            if number == 0 or state.workers[0].phase != IDLE:
                yield from _claim(rules, state, number)
            continue
        if state.crashes:
            draft = Draft(state)
            draft.crashes -= 1
            draft.stop(number)
            yield Move(TROUBLE, labels.KILLED, f"w{number}", rules.sealed(draft))
        yield from _PHASES[worker.phase](rules, state, number, worker)


def _claim(rules: Rules, state: State, number: int) -> Moves:
    draft = Draft(state)
    if state.hint and state.turn == READY:
        draft.turn, draft.hint, draft.attempts = RUNNING, False, state.attempts + 1
        draft.outdate()
        if state.restarted:
            rules.begin_anew(draft)
        label, kind = labels.CLAIMS, SYSTEM
    elif rules.lacks("claim") and state.turn == RUNNING and state.crashes:
        draft.crashes -= 1
        label, kind = labels.CLAIMS_TOO, TROUBLE
    else:
        return
    draft.workers[number] = Worker(AGENT, True, 0, 0, "", 0, 0)
    rules.read_rows(draft, number)
    yield Move(kind, label, f"w{number}", rules.sealed(draft))


def _agent(rules: Rules, state: State, number: int, worker: Worker) -> Moves:
    if not rules.owns_turn(state, worker):
        yield stops(rules, state, number)
        return
    batch = rules.script.batch_of[worker.at]
    draft = Draft(state)
    if worker.at < rules.count:
        label = labels.REPLAYS if state.replies > batch else labels.ASKS_MODEL
        rules.enter(draft, number, batch)
    else:
        label = labels.COMPLETES
        rules.close(draft, number, COMPLETED)
    yield Move(SYSTEM, label, f"w{number}", rules.sealed(draft))
    if state.oddities:
        yield from _odd_agent(rules, state, number, worker, batch)


def _odd_agent(
    rules: Rules, state: State, number: int, worker: Worker, batch: int
) -> Moves:
    yield raises(rules, state, number)
    yield closes(rules, state, number, FAILED, labels.FAILS)
    if worker.at == rules.count:
        return
    begin, end = rules.script.begins[batch], rules.script.ends[batch]
    on_record = [
        index
        for index in range(begin, end)
        if state.calls[index].interrupt != NONE
        or state.calls[index].steps[-1].status != NONE
    ]
    if not on_record:
        return
    yield closes(rules, state, number, COMPLETED, labels.ASKS_NO_MORE)
    if not rules.lacks("gate_compares_calls"):
        yield needs_attention(rules, state, number, labels.DIVERGES, oddities=1)
        return
    for index in on_record:
        if rules.may_begin(state.calls[index], index):
            draft = Draft(state)
            draft.oddities -= 1
            draft.flaw = labels.RUNS_OTHER
            yield Move(TROUBLE, labels.RUNS_OTHER, f"w{number} {index}", draft.frozen())


_PHASES: dict[int, Callable[[Rules, State, int, Worker], Moves]] = {
    AGENT: _agent,
    CALL: at_call,
    BODY: in_body,
    DONE: record,
    FOUND_DONE: take_over,
    FOUND_ABSENT: take_over,
    END: end_batch,
}

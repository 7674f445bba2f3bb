"""What must never happen to a turn, and what must always remain possible."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.explore import CANCEL, PEOPLE, SYSTEM, Change, Flaw, Move, Reachable
from tests.model.turn import labels
from tests.model.turn.rules import Rules
from tests.model.turn.script import IDEMPOTENT, LOOKUP, TRANSACTIONAL
from tests.model.turn.state import (
    CANCELLED,
    CLOSED,
    COMPLETED,
    DECIDED,
    DONE,
    IN_DOUBT,
    MAY_RUN,
    NEEDS_ATTENTION,
    NOBODY,
    NONE,
    NOT_STARTED,
    PENDING,
    READY,
    RESOLVED,
    RUNNING,
    STARTED,
    STEP_FAILED,
    SUCCEEDED,
    SUSPENDED,
    UNKNOWN,
    WAITING,
    WITHDRAWN,
    Call,
    State,
)

COUNTED = "I1: `undecided` counts what waits"
STOPPED = "I2: nothing is pending in a turn that does not wait for it"
DECIDED_ONCE = "one decision a generation"
RESOLVED_ONCE = "an interrupt is resolved once"
AUTHORIZED = "never more effects than authorizations"
USED_ONCE = "one authorization, one effect"
ACTED_ONCE = "nothing acts twice while nobody sleeps past a deadline"
WHAT_WAS_APPROVED = "what starts is what was approved"
IN_TIME = "no first start once the approval has lapsed"
FENCED = "only the worker that holds the turn starts calls"
NEVER_OVER_A_START = "no new generation over a call that ran or may have run"
DOUBT_IS_SHOWN = "an unknown fate is in doubt, or was given up"
NEVER_CLOSED_OVER = "nothing is withdrawn, pending or resolved over a call under way"
HONEST = "what is recorded as failed or never started did nothing"
RECORDED = "a call is resolved as it was recorded"
TRANSACTIONAL_ONCE = "a transactional call acted exactly if it is resolved as run"
REPLY_FIRST = "a call is on record only together with the reply that asked for it"
ALIVE_RECORDS = "the worker that holds the turn can record its own call"

RESTS = "by itself, a turn ends or waits for a person"
FINISHES = "if people are willing, a turn ends"
SHOWN = "an abandoned call is shown to a person, or dealt with"
SHOWN_IN_CLOSED = "in a closed turn, by itself"
SETTLED = "every doubt can be settled"
NOTHING_LEFT = "nothing stays pending or decided in a closed turn"


def changes(before: State, after: State) -> Iterator[Change]:
    """Return every change of a status, to be looked up in the package's tables."""
    if before.turn != after.turn:
        yield "turn", before.turn, after.turn
    for old, new in zip(before.calls, after.calls, strict=True):
        if old is new:
            continue
        # Where there is none any more, another row is looked at from here on.
        if old.interrupt != new.interrupt and new.interrupt:
            yield "interrupt", old.interrupt, new.interrupt
        for was, is_ in zip(old.steps, new.steps, strict=False):
            if was.status != is_.status and is_.status:
                yield "step", was.status, is_.status


def flaw_of(rules: Rules, before: State, move: Move[State]) -> Flaw | None:
    """Return what is wrong with a move."""
    after = move.state
    if after.flaw:
        late = after.flaw == labels.LATE_AT_GATE
        return Flaw(IN_TIME if late else WHAT_WAS_APPROVED, after.flaw)
    if move.label == labels.TOO_LATE and _could_record(before, after):
        return Flaw(ALIVE_RECORDS, move.who)
    for index, (old, new) in enumerate(zip(before.calls, after.calls, strict=True)):
        if old is not new:
            flaw = _flaw_of_call(before, after, index, old, new)
            if flaw is not None:
                return flaw
    return None


def _could_record(before: State, after: State) -> bool:
    """Tell whether the worker that stopped held the turn and its own start."""
    if any(worker.current for worker in after.workers):
        return False
    return any(
        worker.phase == DONE
        and worker.current
        and before.turn == RUNNING
        and before.calls[worker.at].steps[worker.generation][:2] == (STARTED, number)
        for number, worker in enumerate(before.workers)
    )


def _flaw_of_call(
    before: State, after: State, index: int, old: Call, new: Call
) -> Flaw | None:
    where = f"call {index}"
    if len(new.steps) > len(old.steps):
        if old.steps[-1].status in (STARTED, SUCCEEDED):
            return Flaw(NEVER_OVER_A_START, where)
    elif old.interrupt != new.interrupt and new.interrupt == PENDING and old.interrupt:
        return Flaw(NEVER_OVER_A_START, f"{where} asked again in the same generation")
    for was, is_ in zip(old.steps, new.steps, strict=False):
        started = is_.status == STARTED and was.status != STARTED
        holds = is_.owner != NOBODY and after.workers[is_.owner].current
        if started and not (before.turn == RUNNING and holds):
            return Flaw(FENCED, where)
    acted = sum(step.effects for step in new.steps) > sum(
        step.effects for step in old.steps
    )
    if acted and before.turn != RUNNING and all(not step.status for step in old.steps):
        return Flaw(FENCED, f"{where} acted in a {before.turn} turn")
    return None


def flaw_in(rules: Rules, state: State) -> Flaw | None:
    """Return what is wrong with a state."""
    waiting = sum(call.interrupt in WAITING for call in state.calls)
    if state.turn in (READY, RUNNING, SUSPENDED):
        if state.undecided != waiting or (waiting > 0) != (state.turn == SUSPENDED):
            return Flaw(COUNTED, f"{state.undecided}, {waiting} wait, {state.turn}")
    elif state.undecided or any(call.interrupt == PENDING for call in state.calls):
        return Flaw(STOPPED, state.turn)
    for index, call in enumerate(state.calls):
        broken = (
            _counts(rules, call, index)
            or _honest(rules, call, index)
            or _ledger(call)
            or _transactional(rules, call, index)
            or _reply(rules, state, call, index)
        )
        if broken:
            return Flaw(broken, f"call {index}: {call}")
    return None


def _counts(rules: Rules, call: Call, index: int) -> str:
    if call.decisions > 1:
        return DECIDED_ONCE
    if call.resolutions > 1:
        return RESOLVED_ONCE
    effects = [step.effects for step in call.steps]
    if rules.strict and sum(effects) > 1:
        return ACTED_ONCE
    # What a look-up tool does is bounded only while the hard deadline holds.
    if rules.modes[index] != LOOKUP or rules.strict:
        if sum(effects) > call.authorized + rules.free[index]:
            return AUTHORIZED
        if max(effects) > 1:
            return USED_ONCE
    return ""


def _honest(rules: Rules, call: Call, index: int) -> str:
    mode = rules.modes[index]
    for status, _owner, effects in call.steps:
        if not effects or (mode == LOOKUP and not rules.strict):
            continue
        # Of a failure the other side's word is taken, whatever arrives there later.
        if status == NOT_STARTED or (status == STEP_FAILED and mode != IDEMPOTENT):
            return HONEST
    return ""


def _ledger(call: Call) -> str:
    status = call.steps[-1].status
    if any(step.status in (STARTED, SUCCEEDED) for step in call.steps[:-1]):
        return NEVER_OVER_A_START
    if (call.interrupt == IN_DOUBT) != (status == UNKNOWN) and (
        call.interrupt != WITHDRAWN
    ):
        return DOUBT_IS_SHOWN
    if status == STARTED and call.interrupt not in (DECIDED, NONE):
        return NEVER_CLOSED_OVER
    if status in (SUCCEEDED, STEP_FAILED) and call.interrupt not in (RESOLVED, NONE):
        return RECORDED
    ran = status in (SUCCEEDED, STEP_FAILED)
    if call.interrupt == RESOLVED and call.decision in MAY_RUN and not ran:
        return RECORDED
    if call.interrupt == PENDING and status:
        return NEVER_CLOSED_OVER
    return ""


def _transactional(rules: Rules, call: Call, index: int) -> str:
    if rules.modes[index] != TRANSACTIONAL:
        return ""
    acted = sum(step.effects for step in call.steps)
    ran = sum(step.status == SUCCEEDED for step in call.steps)
    begun = call.steps[-1].status in (STARTED, UNKNOWN)
    resolved = call.interrupt == RESOLVED or rules.free[index]
    return TRANSACTIONAL_ONCE if acted != ran or begun or (ran and not resolved) else ""


def _reply(rules: Rules, state: State, call: Call, index: int) -> str:
    on_record = call.interrupt != NONE or call.steps[0].status != NONE
    return (
        REPLY_FIRST
        if on_record and state.replies <= rules.script.batch_of[index]
        else ""
    )


# What must remain possible.


def _rests(state: State) -> bool:
    return (
        state.turn in CLOSED
        or state.turn == NEEDS_ATTENTION
        or (
            state.turn == SUSPENDED
            and any(call.interrupt in WAITING for call in state.calls)
        )
    )


def _hides(state: State) -> bool:
    """Tell whether a start stands that nobody executes and nobody is asked about."""
    return any(
        step.status == STARTED and step.owner == NOBODY
        for call in state.calls
        for step in call.steps
    )


def _hides_in_closed(state: State) -> bool:
    return state.turn in CLOSED and _hides(state)


def _doubtful(state: State) -> bool:
    return any(call.interrupt == IN_DOUBT for call in state.calls)


def _leaves(state: State) -> bool:
    return state.turn in CLOSED and any(
        call.interrupt in (PENDING, DECIDED) for call in state.calls
    )


def reachable(rules: Rules) -> list[Reachable[State]]:
    """Return what must remain possible from every state."""
    # Where arguments were forged, nothing is left to people but to cancel.
    willing = SYSTEM + PEOPLE + (CANCEL if rules.world.forgeries else "")
    return [
        Reachable(RESTS, SYSTEM, _rests),
        Reachable(
            FINISHES, willing, lambda state: state.turn in (COMPLETED, CANCELLED)
        ),
        Reachable(SHOWN, SYSTEM + PEOPLE, lambda state: not _hides(state), _hides),
        Reachable(
            SHOWN_IN_CLOSED,
            SYSTEM,
            lambda state: not _hides_in_closed(state),
            _hides_in_closed,
        ),
        Reachable(
            SETTLED, SYSTEM + PEOPLE, lambda state: not _doubtful(state), _doubtful
        ),
        Reachable(NOTHING_LEFT, SYSTEM, lambda state: not _leaves(state), _leaves),
    ]

"""What people, clocks and forgers do to a turn, and how turns begin."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.explore import CANCEL, PEOPLE, SYSTEM, TROUBLE, Move
from tests.model.turn import labels
from tests.model.turn.rules import Rules
from tests.model.turn.script import QUESTION
from tests.model.turn.state import (
    AGENT,
    ANSWER,
    APPROVE,
    ASKED,
    CANCELLED,
    CHOSEN,
    DECIDED,
    EDIT,
    FAILED,
    IN_DOUBT,
    MAY_RUN,
    NEEDS_ATTENTION,
    NONE,
    NOT_STARTED,
    OPEN_TURN,
    PENDING,
    PLAIN,
    READY,
    REFUSE,
    RESOLVED,
    RUNNING,
    STARTED,
    SUCCEEDED,
    SUPERSEDED,
    SUSPENDED,
    Call,
    Draft,
    State,
    Worker,
)

Moves = Iterator[Move[State]]


def begin(rules: Rules, state: State) -> Moves:
    """Create the turn: owed, claimed by its creator, or born with a request."""
    draft = Draft(state)
    draft.turn = READY
    for draft.hint in (False, True):
        yield Move(SYSTEM, labels.START_OWED, "site", rules.sealed(draft))
    if not rules.world.started_here:
        return
    draft = Draft(state)
    draft.turn, draft.attempts = RUNNING, 1
    draft.workers[0] = Worker(AGENT, True, 0, 0, PLAIN * rules.count, 0, 0)
    yield Move(SYSTEM, labels.START_HERE, "site", rules.sealed(draft))
    if rules.count == 1 and rules.asks(0) and rules.modes[0] != QUESTION:
        draft = Draft(state)
        draft.turn, draft.undecided, draft.replies = SUSPENDED, 1, 1
        draft.call(0, interrupt=PENDING)
        yield Move(SYSTEM, labels.REQUEST, "site", rules.sealed(draft))


def decide(rules: Rules, state: State) -> Moves:
    """Decide what is pending, in every way that is offered."""
    waits = state.turn == SUSPENDED and state.undecided
    if not waits and not rules.lacks("decide_asks_turn"):
        return
    for index, call in enumerate(state.calls):
        if call.interrupt == PENDING:
            for label, decision in _offered(rules, call, index):
                yield from _decided(rules, state, index, label, decision)
            if len(call.steps) > 1 and rules.lacks("decide_asks_revision"):
                yield from _decided(
                    rules, state, index, labels.STALE_FORM, APPROVE, informed=False
                )
        elif call.interrupt == DECIDED and rules.lacks("decide_rolls_back"):
            for after in rules.lower(Draft(state)):
                yield Move(PEOPLE, labels.REPEATS, f"rita {index}", after)
        elif (
            call.interrupt in (DECIDED, RESOLVED)
            and call.decisions == 1
            and rules.lacks("decide_asks_pending")
        ):
            yield from _decided(rules, state, index, labels.REPEATS, APPROVE)


def _offered(rules: Rules, call: Call, index: int) -> Iterator[tuple[str, str]]:
    yield labels.REFUSES, REFUSE
    yield labels.EXPIRES, REFUSE
    if rules.modes[index] == QUESTION:
        yield labels.ANSWERS, ANSWER
    elif call.forged != ASKED or rules.lacks("decide_compares"):
        # What was shown is compared with the digest before it is approved or edited.
        yield labels.APPROVES, APPROVE
        if rules.world.edits:
            yield labels.EDITS, EDIT


def _decided(
    rules: Rules,
    state: State,
    index: int,
    label: str,
    decision: str,
    *,
    informed: bool = True,
) -> Moves:
    call = state.calls[index]
    draft = Draft(state)
    draft.call(
        index,
        interrupt=DECIDED,
        decision=decision,
        decisions=call.decisions + 1,
        authorized=call.authorized + (decision in MAY_RUN and informed),
    )
    by_clock = label == labels.EXPIRES
    for after in rules.lower(draft):
        yield Move(
            TROUBLE if by_clock else PEOPLE,
            label,
            f"{'sweeper' if by_clock else 'rita'} {index}",
            after,
        )


def settle(rules: Rules, state: State) -> Moves:
    """Say what became of a call in doubt; where nobody waits for it, only record."""
    waits = state.turn == SUSPENDED
    if not waits and rules.lacks("settle_records"):
        return
    for index, call in enumerate(state.calls):
        if call.interrupt == IN_DOUBT:
            for label, draft in _answers(rules, state, index, call):
                ends = rules.lower(draft) if waits else iter((rules.sealed(draft),))
                for after in ends:
                    yield Move(PEOPLE, label, f"sina {index}", after)


def _answers(
    rules: Rules, state: State, index: int, call: Call
) -> Iterator[tuple[str, Draft]]:
    happened = sum(step.effects for step in call.steps) > 0
    if happened or not rules.strict:
        draft = Draft(state)
        draft.step(index, SUCCEEDED)
        draft.call(index, interrupt=RESOLVED, resolutions=call.resolutions + 1)
        yield labels.SETTLES_HAPPENED, draft
    draft = Draft(state)
    rules.withdraw(draft, index)
    yield labels.SETTLES_GIVEN_UP, draft
    early = not rules.deadline_passed(state, index, len(call.steps) - 1)
    if (
        state.turn in (SUSPENDED, NEEDS_ATTENTION)
        and state.reopenings
        and not (rules.strict and happened)
        and not (early and not rules.lacks("again_waits"))
    ):
        draft = Draft(state)
        draft.reopenings -= 1
        draft.reopen(
            index,
            interrupt=DECIDED,
            decision=call.decision or APPROVE,
            decisions=1,
            authorized=call.authorized + 1,
        )
        yield labels.SETTLES_AGAIN, draft


def administer(rules: Rules, state: State) -> Moves:
    """Retry a stopped turn, or cancel an open one."""
    if state.turn in (NEEDS_ATTENTION, FAILED):
        draft = Draft(state)
        doubts = sum(call.interrupt == IN_DOUBT for call in state.calls)
        if rules.lacks("retry_counts"):
            doubts = 0
        draft.turn, draft.undecided = (SUSPENDED, doubts) if doubts else (READY, 0)
        draft.attempts, draft.hint = 0, False
        yield Move(PEOPLE, labels.RETRIES, "olga", rules.sealed(draft))
        yield from _restart(rules, state, doubts)
        yield from _take_back(rules, state)
    if state.turn in OPEN_TURN:
        draft = Draft(state)
        draft.turn, draft.hint = CANCELLED, False
        if not rules.lacks("cancel_counts"):
            draft.undecided = 0
        for index, call in enumerate(state.calls):
            spared = call.steps[-1].status == STARTED
            if call.interrupt == PENDING or (
                call.interrupt == DECIDED
                and (not spared or rules.lacks("cancel_spares"))
            ):
                rules.withdraw(draft, index)
        if not rules.lacks("cancel_raises_fence"):
            draft.outdate()
        yield Move(CANCEL, labels.CANCELS, "olga", rules.sealed(draft))


def _restart(rules: Rules, state: State, doubts: int) -> Moves:
    """Begin anew; a call that may be under way has to be doubted and settled first."""
    if any(call.steps[-1].status == STARTED for call in state.calls):
        return
    draft = Draft(state)
    for index, call in enumerate(state.calls):
        if call.interrupt == DECIDED:
            rules.withdraw(draft, index)
    draft.turn, draft.undecided = (SUSPENDED, doubts) if doubts else (READY, 0)
    draft.attempts, draft.hint, draft.restarted = 0, False, True
    yield Move(PEOPLE, labels.RESTARTS, "olga", rules.sealed(draft))


def _take_back(rules: Rules, state: State) -> Moves:
    """Withdraw a decision that nothing was run for; the next run asks anew."""
    if state.turn != NEEDS_ATTENTION:
        return
    for index, call in enumerate(state.calls):
        begun = any(step.status not in (NONE, NOT_STARTED) for step in call.steps)
        if call.interrupt == DECIDED and not begun and rules.modes[index] != QUESTION:
            draft = Draft(state)
            rules.withdraw(draft, index)
            draft.call(index, decision=SUPERSEDED)
            yield Move(PEOPLE, labels.TAKES_BACK, f"olga {index}", rules.sealed(draft))


def pass_time(rules: Rules, state: State) -> Moves:
    """Let the time pass in which an approved call may start."""
    if not state.reopenings or state.turn not in OPEN_TURN:
        return
    for index, call in enumerate(state.calls):
        limited = call.interrupt == DECIDED and call.decision in MAY_RUN
        begun = call.steps[-1].status not in (NONE, NOT_STARTED)
        if rules.lacks("lapse_asks_step"):
            begun = False
        if limited and not begun and not call.late:
            draft = Draft(state)
            draft.reopenings -= 1
            draft.call(index, late=True)
            yield Move(TROUBLE, labels.EXECUTE_BY, f"clock {index}", draft.frozen())


def forge(rules: Rules, state: State) -> Moves:
    """Change stored arguments past every service: those asked for, or the edited ones."""
    if not state.forgeries:
        return
    for index, call in enumerate(state.calls):
        if call.forged or call.interrupt not in (PENDING, DECIDED):
            continue
        for forged in (ASKED, CHOSEN) if call.decision == EDIT else (ASKED,):
            draft = Draft(state)
            draft.forgeries -= 1
            draft.call(index, forged=forged)
            yield Move(TROUBLE, labels.FORGES, f"mallory {index}", draft.frozen())

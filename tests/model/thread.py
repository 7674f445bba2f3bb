"""Threads: several turns of one conversation, of which one at a time may run.

A turn is reduced to its status; what happens inside it is the turn model's business. A
claim that meets another turn's thread and the `blocked` that it then writes are two
transactions: between them the claimer may sleep, and anything may happen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from hitl_approvals.enums import TurnStatus
from tests.model.explore import (
    CANCEL,
    PEOPLE,
    SYSTEM,
    TROUBLE,
    Change,
    Flaw,
    Move,
    Reachable,
)

READY = TurnStatus.READY.value
RUNNING = TurnStatus.RUNNING.value
SUSPENDED = TurnStatus.SUSPENDED.value
COMPLETED = TurnStatus.COMPLETED.value
NEEDS_ATTENTION = TurnStatus.NEEDS_ATTENTION.value
FAILED = TurnStatus.FAILED.value
CANCELLED = TurnStatus.CANCELLED.value
OPEN = (READY, RUNNING, SUSPENDED, NEEDS_ATTENTION)
FINAL = (COMPLETED, FAILED, CANCELLED)

STARTS = "starts a turn of the thread"
STARTS_HOLDING = "starts a turn that takes its thread at once"
STARTS_HERE = "starts a turn of the thread and runs it here"
MEETS_AT_START = "finds another turn there at the start"
STARTS_BLOCKED = "starts the turn as waiting instead"
CLAIMS_THREAD = "claims, and with the turn its thread"
MEETS = "finds the thread taken by another turn"
FLAGS = "marks the turn as waiting"
CLAIMER_KILLED = "is killed before it marks the turn"
ENDS = "ends a turn"
LEAVES = "leaves a turn that is not over"
STUCK = "stops a turn where only a person moves it"
DOUBT_FOUND = "finds a call in doubt in a stopped turn"
LAPSE = "sends an unused approval of a waiting turn back"
DECIDED_ALL = "decides what a turn waits for"
SETTLED_ALL = "settles the doubt of a stopped turn"
RETRIED = "retries a stopped turn"
CANCELLED_ONE = "cancels a turn of the thread"
UNBLOCKS = "lets the oldest waiting turn try again"

ONE_HOLDER = "one turn at a time holds the thread"
HOLDER_RUNS = "what runs holds the thread"
LETS_GO = "what is over does not hold the thread"
WAITS_BEHIND = "only a ready turn waits, and never behind itself"
NEVER_FORGOTTEN = (
    "by itself, every turn ends, or waits for a person or behind one that does"
)
ALL_END = "if people are willing, all turns end"

GUARDS = {
    "unique_thread": "two turns cannot hold one thread",
    "claim_takes_thread": "a claim takes the thread",
    "suspended_keeps_thread": "a turn that waits for people keeps its thread",
    "end_lets_go": "a turn that is over lets go of its thread",
    "end_unblocks": "the end of a turn wakes the oldest that waits",
    "sweep_unblocks": "the sweeper wakes the oldest of a thread that nobody holds or is to get",
    "flag_asks_thread": "no turn that holds the thread is marked as waiting for it",
}


class Turn(NamedTuple):
    """One turn of the thread."""

    status: str
    holds: bool
    blocked: bool
    sleeper: bool
    """Whether a process sleeps between meeting the other turn and its mark."""
    doubt: bool
    failed: bool
    """Whether it failed once: then it may wait for people without its thread."""


class Thread(NamedTuple):
    """The turns, oldest first, and how often a failed one may be tried again."""

    turns: tuple[Turn, ...]
    retries: int


ABSENT = Turn("", False, False, False, False, False)


@dataclass(frozen=True)
class ThreadModel:
    """Every order in which everything may happen to the turns of one thread."""

    count: int
    retries: int = 1
    without: str = ""

    @property
    def name(self) -> str:
        return f"thread of {self.count}" + f" without {self.without}" * bool(
            self.without
        )

    @property
    def promises(self) -> list[Reachable[Thread]]:
        return [
            Reachable(NEVER_FORGOTTEN, SYSTEM, _rests),
            Reachable(
                ALL_END,
                SYSTEM + PEOPLE,
                lambda state: all(turn.status in FINAL for turn in state.turns),
                lambda state: all(turn.status for turn in state.turns),
            ),
        ]

    def initial(self) -> Thread:
        return Thread((ABSENT,) * self.count, self.retries)

    def moves(self, state: Thread) -> Iterator[Move[Thread]]:
        for index, turn in enumerate(state.turns):
            if not turn.status:
                # They start in their order; that makes no difference to the rest.
                yield from self._starts(state, index, turn)
                break
            yield from chain(
                self._claimed(state, index, turn),
                self._performed(state, index, turn),
                self._administered(state, index, turn),
            )
        given = _held(state) or _next(state)
        if not given and not self._lacks("sweep_unblocks"):
            after = _unblocked(state)
            if after != state:
                yield Move(SYSTEM, UNBLOCKS, "sweeper", after)

    def changes(self, before: Thread, after: Thread) -> Iterator[Change]:
        for old, new in zip(before.turns, after.turns, strict=True):
            if old.status != new.status:
                yield "turn", old.status, new.status

    def flaw_of(self, before: Thread, move: Move[Thread]) -> Flaw | None:
        return None

    def flaw_in(self, state: Thread) -> Flaw | None:
        if sum(turn.holds for turn in state.turns) > 1:
            return Flaw(ONE_HOLDER, repr(state))
        for index, turn in enumerate(state.turns):
            waits_legally = turn.status == SUSPENDED and turn.failed
            needs = turn.status in (RUNNING, SUSPENDED) and not waits_legally
            if needs and not turn.holds:
                return Flaw(HOLDER_RUNS, f"turn {index}")
            if turn.status in FINAL and turn.holds:
                return Flaw(LETS_GO, f"turn {index}")
            if turn.blocked and (turn.status != READY or turn.holds):
                return Flaw(WAITS_BEHIND, f"turn {index}")
        return None

    def _lacks(self, guard: str) -> bool:
        return guard in self.without.split()

    def _may_hold(self, state: Thread, index: int) -> bool:
        others = state.turns[:index] + state.turns[index + 1 :]
        free = not any(turn.holds for turn in others)
        return free or self._lacks("unique_thread")

    def _starts(self, state: Thread, index: int, turn: Turn) -> Iterator[Move[Thread]]:
        who = f"site {index}"
        if turn.sleeper:
            after = _put(state, index, status=READY, blocked=True, sleeper=False)
            yield Move(SYSTEM, STARTS_BLOCKED, who, after)
            return
        # Two that start together may both see nobody there.
        yield Move(SYSTEM, STARTS, who, _put(state, index, status=READY))
        if self._may_hold(state, index):
            for label, status in ((STARTS_HERE, RUNNING), (STARTS_HOLDING, READY)):
                after = _put(state, index, status=status, holds=True)
                yield Move(SYSTEM, label, who, after)
        if any(other.status in OPEN for other in state.turns[:index]):
            after = _put(state, index, sleeper=True)
            yield Move(SYSTEM, MEETS_AT_START, who, after)

    def _claimed(self, state: Thread, index: int, turn: Turn) -> Iterator[Move[Thread]]:
        who = f"worker {index}"
        if turn.status == READY and not turn.blocked:
            if self._may_hold(state, index):
                holds = not self._lacks("claim_takes_thread")
                after = _put(state, index, status=RUNNING, holds=holds)
                yield Move(SYSTEM, CLAIMS_THREAD, who, after)
            elif not turn.sleeper:
                yield Move(SYSTEM, MEETS, who, _put(state, index, sleeper=True))
        if turn.sleeper:
            marks = turn.status == READY and (
                not turn.holds or self._lacks("flag_asks_thread")
            )
            after = _put(state, index, sleeper=False, blocked=turn.blocked or marks)
            yield Move(SYSTEM, FLAGS, who, after)
            after = _put(state, index, sleeper=False)
            yield Move(TROUBLE, CLAIMER_KILLED, who, after)

    def _performed(
        self, state: Thread, index: int, turn: Turn
    ) -> Iterator[Move[Thread]]:
        who = f"worker {index}"
        if turn.status == RUNNING:
            yield Move(SYSTEM, ENDS, who, self._ended(state, index, COMPLETED))
            yield Move(TROUBLE, ENDS, who, self._ended(state, index, FAILED))
            keeps = turn.holds and not self._lacks("suspended_keeps_thread")
            for status, holds in ((SUSPENDED, keeps), (READY, turn.holds)):
                after = _put(state, index, status=status, holds=holds)
                yield Move(TROUBLE, LEAVES, who, after)
        if turn.status == RUNNING or (turn.status == READY and not turn.blocked):
            after = _put(state, index, status=NEEDS_ATTENTION)
            yield Move(TROUBLE, STUCK, who, after)
        if turn.status == READY and (turn.holds or turn.failed):
            # What lapses was decided, so the turn ran before.
            after = _put(state, index, status=SUSPENDED, blocked=False)
            yield Move(TROUBLE, LAPSE, f"sweeper {index}", after)

    def _administered(
        self, state: Thread, index: int, turn: Turn
    ) -> Iterator[Move[Thread]]:
        who = f"olga {index}"
        stopped = turn.status == NEEDS_ATTENTION or (
            turn.status == FAILED and state.retries > 0
        )
        ran = turn.holds or turn.status == FAILED
        if stopped and ran and not turn.doubt:
            after = _put(state, index, doubt=True)
            yield Move(TROUBLE, DOUBT_FOUND, f"sweeper {index}", after)
        if turn.status in FINAL and turn.doubt:
            yield Move(PEOPLE, SETTLED_ALL, who, _put(state, index, doubt=False))
        if turn.status == SUSPENDED:
            after = _put(state, index, status=READY, doubt=False)
            yield Move(PEOPLE, DECIDED_ALL, who, after)
        if stopped:
            status = SUSPENDED if turn.doubt else READY
            after = _put(
                state, index, status=status, failed=turn.failed or turn.status == FAILED
            )
            retries = state.retries - (turn.status == FAILED)
            yield Move(PEOPLE, RETRIED, who, after._replace(retries=retries))
        if turn.status not in FINAL:
            after = self._ended(state, index, CANCELLED)
            yield Move(CANCEL, CANCELLED_ONE, who, after)

    def _ended(self, state: Thread, index: int, status: str) -> Thread:
        holds = state.turns[index].holds and self._lacks("end_lets_go")
        after = _put(state, index, status=status, holds=holds, blocked=False)
        return after if self._lacks("end_unblocks") else _unblocked(after)


def _put(state: Thread, index: int, **fields: Any) -> Thread:
    turn = state.turns[index]._replace(**fields)
    if turn.status in FINAL:
        turn = turn._replace(sleeper=False)
    turns = (*state.turns[:index], turn, *state.turns[index + 1 :])
    return state._replace(turns=turns)


def _held(state: Thread) -> bool:
    return any(turn.holds for turn in state.turns)


def _next(state: Thread) -> bool:
    return any(turn.status == READY and not turn.blocked for turn in state.turns)


def _unblocked(state: Thread) -> Thread:
    for index, turn in enumerate(state.turns):
        if turn.blocked and turn.status == READY:
            return _put(state, index, blocked=False)
    return state


def _rests(state: Thread) -> bool:
    asks = [turn.status in (SUSPENDED, NEEDS_ATTENTION) for turn in state.turns]
    behind = any(
        turn.holds and waits for turn, waits in zip(state.turns, asks, strict=True)
    )
    return all(
        turn.status in FINAL or waits or (turn.blocked and behind)
        for turn, waits in zip(state.turns, asks, strict=True)
    )


MUTANTS = {
    "unique_thread": ONE_HOLDER,
    "claim_takes_thread": HOLDER_RUNS,
    "suspended_keeps_thread": HOLDER_RUNS,
    "end_lets_go": LETS_GO,
    "sweep_unblocks": NEVER_FORGOTTEN,
    "flag_asks_thread": WAITS_BEHIND,
}
"""Guards left out, and the promise that breaks then."""

SURVIVORS = {
    "end_unblocks": "the sweeper does it too; the end of a turn is only faster"
}

"""Breadth-first search over every state that a model can reach. Knows no model.

A move is one transaction, one effect, or one thing that happens to a process or a clock.
Each move's changes of status are compared with the package's own transition tables.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

from hitl_approvals.transitions import INTERRUPT, STEP, TURN

S = TypeVar("S", bound=Hashable)

SYSTEM = "s"
"""Happens by itself sooner or later: workers, sweeper, a lease that lapses."""
PEOPLE = "p"
"""Happens if people are willing: decide, settle, retry."""
CANCEL = "c"
"""What people do when nothing else helps."""
TROUBLE = "x"
"""May happen, and nobody may count on it: crashes, errors, clocks."""

TABLES = {"turn": TURN, "interrupt": INTERRUPT, "step": STEP}
UNKNOWN_TRANSITION = "every change of status stands in the tables"

Change = tuple[str, str, str]
"""Name of the table, status before, status after."""


class Move(NamedTuple, Generic[S]):
    """One thing that may happen next, and the state after it."""

    kind: str
    label: str
    who: str
    state: S


class Flaw(NamedTuple):
    """A promise that a state or a move breaks."""

    promise: str
    detail: str


@dataclass(frozen=True)
class Reachable(Generic[S]):
    """The promise that moves of some kinds can lead on to some state."""

    promise: str
    kinds: str
    target: Callable[[S], bool]
    concerns: Callable[[S], bool] = lambda state: True


class Model(Protocol[S]):
    """What the search has to know of a model."""

    @property
    def name(self) -> str: ...

    @property
    def promises(self) -> Sequence[Reachable[S]]: ...

    def initial(self) -> S: ...

    def moves(self, state: S) -> Iterator[Move[S]]: ...

    def changes(self, before: S, after: S) -> Iterable[Change]:
        """Return the changes of status between two states."""
        ...

    def flaw_of(self, before: S, move: Move[S]) -> Flaw | None:
        """Return what is wrong with a move, its new state apart."""
        ...

    def flaw_in(self, state: S) -> Flaw | None:
        """Return what is wrong with a state."""
        ...


@dataclass
class Verdict:
    """What the search found."""

    HEADER: ClassVar[str] = (
        f"{'configuration':<52}{'states':>10}{'moves':>11}{'seconds':>9}  verdict"
    )

    name: str
    states: int = 0
    moves: int = 0
    seconds: float = 0.0
    violated: str = ""
    """The broken promise; empty if all hold."""
    detail: str = ""
    trace: list[str] = field(default_factory=list)
    """The shortest way there."""
    complete: bool = True
    """Whether every state was seen; False after a flaw or at the limit."""
    labels: set[str] = field(default_factory=set)
    transitions: set[Change] = field(default_factory=set)

    @property
    def holds(self) -> bool:
        return not self.violated

    def __str__(self) -> str:
        said = f"broken: {self.violated}" if self.violated else "holds"
        if self.holds and not self.complete:
            said = "holds as far as it was explored"
        return (
            f"{self.name:<52}{self.states:>10,}{self.moves:>11,}{self.seconds:>9.1f}"
            f"  {said}"
        )

    def told(self) -> list[str]:
        """Return the way to the flaw, one move a line, and what is wrong there."""
        way = [f"  {number:>3} {text}" for number, text in enumerate(self.trace, 1)]
        return [*way, f"      {self.detail}"] if self.violated else way


class _Search(Generic[S]):
    """The states found so far, in the order of their distance."""

    def __init__(self, model: Model[S]) -> None:
        self.model = model
        start = model.initial()
        self.number: dict[S, int] = {start: 0}
        self.states: list[S] = [start]
        self.parents = array("q", [-1])
        self.reached_by: list[str] = [""]
        # One entry a move, in the order of its first state.
        self.ends = array("q")
        self.kinds: list[str] = []
        self.first_move = array("q", [0])
        self.known: set[Change] = set()
        self.verdict = Verdict(model.name)

    def run(self, limit: int | None) -> Verdict:
        started = time.perf_counter()
        flaw = self._explore(limit)
        verdict = self.verdict
        if flaw is None and verdict.complete:
            flaw = self._check_promises()
        if flaw is not None:
            verdict.violated, verdict.detail = flaw
        verdict.states, verdict.moves = len(self.states), len(self.ends)
        verdict.seconds = time.perf_counter() - started
        verdict.transitions = self.known
        return verdict

    def _explore(self, limit: int | None) -> Flaw | None:
        model, number, labels = self.model, self.number, self.verdict.labels
        flaw = model.flaw_in(self.states[0])
        at = 0
        while at < len(self.states) and flaw is None:
            if limit is not None and at >= limit:
                self.verdict.complete = False
                return None
            before = self.states[at]
            for move in model.moves(before):
                labels.add(move.label)
                index = number.get(move.state)
                flaw = self._unknown_change(before, move.state) or model.flaw_of(
                    before, move
                )
                if index is None:
                    index = self._add(move, at)
                    flaw = flaw or model.flaw_in(move.state)
                self.ends.append(index)
                self.kinds.append(move.kind)
                if flaw is not None:
                    self.verdict.complete = False
                    self.verdict.trace = [*self._way_to(at), _said(move)]
                    break
            self.first_move.append(len(self.ends))
            at += 1
        return flaw

    def _add(self, move: Move[S], parent: int) -> int:
        index = self.number[move.state] = len(self.states)
        self.states.append(move.state)
        self.parents.append(parent)
        self.reached_by.append(_said(move))
        return index

    def _unknown_change(self, before: S, after: S) -> Flaw | None:
        for change in self.model.changes(before, after):
            if change not in self.known:
                table, from_, to = change
                self.known.add(change)
                if to not in TABLES[table].get(from_, ()):
                    detail = f"{table}: {from_ or 'none'} to {to}"
                    return Flaw(UNKNOWN_TRANSITION, detail)
        return None

    def _check_promises(self) -> Flaw | None:
        sources, offsets = self._backwards()
        for promise in self.model.promises:
            lost = self._first_lost(promise, sources, offsets)
            if lost is not None:
                self.verdict.trace = self._way_to(lost)
                return Flaw(promise.promise, repr(self.states[lost]))
        return None

    def _backwards(self) -> tuple[array[int], array[int]]:
        """Return the moves sorted by where they end, as numbers of moves."""
        count = len(self.states)
        offsets = array("q", bytes(8 * (count + 1)))
        for end in self.ends:
            offsets[end + 1] += 1
        for index in range(count):
            offsets[index + 1] += offsets[index]
        place = array("q", offsets)
        sources = array("q", bytes(8 * len(self.ends)))
        self._start_of = array("q", bytes(8 * len(self.ends)))
        for index in range(count):
            for move in range(self.first_move[index], self.first_move[index + 1]):
                end = self.ends[move]
                sources[place[end]] = move
                self._start_of[move] = index
                place[end] += 1
        return sources, offsets

    def _first_lost(
        self, promise: Reachable[S], sources: array[int], offsets: array[int]
    ) -> int | None:
        states, kinds, start_of = self.states, self.kinds, self._start_of
        good = bytearray(promise.target(state) for state in states)
        todo = [index for index, found in enumerate(good) if found]
        while todo:
            end = todo.pop()
            for place in range(offsets[end], offsets[end + 1]):
                move = sources[place]
                start = start_of[move]
                if not good[start] and kinds[move] in promise.kinds:
                    good[start] = 1
                    todo.append(start)
        for index, found in enumerate(good):
            if not found and promise.concerns(states[index]):
                return index
        return None

    def _way_to(self, index: int) -> list[str]:
        way = []
        while index > 0:
            way.append(self.reached_by[index])
            index = self.parents[index]
        return way[::-1]


def _said(move: Move[S]) -> str:
    return f"{move.who}: {move.label}"


def explore(model: Model[S], *, limit: int | None = None) -> Verdict:
    """Visit every state, and check every promise in every one of them.

    Args:
        model: What may happen, and what must never or always be possible.
        limit: Most states to look at; the promises that something can be reached need
            all of them and are left out then.
    """
    return _Search(model).run(limit)

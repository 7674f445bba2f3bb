"""The turn: two workers, the sweeper, people and the clock over one `AgentTurn`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from tests.model.explore import Change, Flaw, Move, Reachable
from tests.model.turn import people, promises, sweeper, worker
from tests.model.turn.rules import Rules
from tests.model.turn.script import World
from tests.model.turn.state import ABSENT, NO_WORKER, NONE, State

__all__ = ["TurnModel", "World"]


class TurnModel:
    """Every order in which everything may happen to one turn."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rules = Rules(world)
        self.name = world.name

    @property
    def promises(self) -> list[Reachable[State]]:
        return promises.reachable(self.rules)

    def initial(self) -> State:
        world = self.world
        return State(
            turn=NONE,
            undecided=0,
            attempts=0,
            hint=False,
            replies=0,
            restarted=False,
            calls=(ABSENT,) * self.rules.count,
            workers=(NO_WORKER, NO_WORKER),
            crashes=world.crashes,
            zombies=world.zombies,
            reopenings=world.reopenings,
            oddities=world.oddities,
            forgeries=world.forgeries,
            flaw=NONE,
        )

    def moves(self, state: State) -> Iterator[Move[State]]:
        if state.turn == NONE:
            return people.begin(self.rules, state)
        return chain(
            people.decide(self.rules, state),
            people.settle(self.rules, state),
            people.administer(self.rules, state),
            people.pass_time(self.rules, state),
            people.forge(self.rules, state),
            sweeper.sweep(self.rules, state),
            sweeper.hold(self.rules, state),
            worker.work(self.rules, state),
        )

    def changes(self, before: State, after: State) -> Iterable[Change]:
        return promises.changes(before, after)

    def flaw_of(self, before: State, move: Move[State]) -> Flaw | None:
        return promises.flaw_of(self.rules, before, move)

    def flaw_in(self, state: State) -> Flaw | None:
        return promises.flaw_in(self.rules, state) if state.turn != NONE else None

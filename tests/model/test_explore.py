"""The search itself: it finds the shortest way, and what cannot be reached."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.model.explore import (
    SYSTEM,
    TROUBLE,
    UNKNOWN_TRANSITION,
    Flaw,
    Move,
    Reachable,
    explore,
)


@dataclass
class Steps:
    """Numbers that grow by one or by two, up to a last one, and may fall into a hole."""

    last: int = 6
    bad: int = -1
    hole: int | None = None
    statuses: dict[int, str] = field(default_factory=dict)
    name: str = "steps"

    @property
    def promises(self):
        return [Reachable("the end", SYSTEM, lambda number: number == self.last)]

    def initial(self):
        return 0

    def moves(self, number):
        for width in (1, 2):
            if number + width <= self.last and number != self.hole:
                yield Move(SYSTEM, f"plus {width}", "foot", number + width)
        if self.hole is not None and number + 1 == self.hole:
            yield Move(TROUBLE, "falls", "foot", self.hole)

    def changes(self, before, after):
        if before in self.statuses and after in self.statuses:
            yield "turn", self.statuses[before], self.statuses[after]

    def flaw_of(self, before, move):
        return None

    def flaw_in(self, number):
        return Flaw("no bad number", str(number)) if number == self.bad else None


def test_a_model_without_flaw_is_explored_whole():
    verdict = explore(Steps())

    assert verdict.holds
    assert verdict.complete
    assert (verdict.states, verdict.moves) == (7, 11)
    assert verdict.labels == {"plus 1", "plus 2"}
    assert str(verdict).endswith("holds")


def test_the_shortest_way_to_a_flaw_is_told():
    verdict = explore(Steps(bad=5))

    assert verdict.violated == "no bad number"
    assert len(verdict.trace) == 3
    assert verdict.told()[-1].strip() == "5"
    assert "broken: no bad number" in str(verdict)


def test_a_state_from_which_the_end_cannot_be_reached_is_told():
    verdict = explore(Steps(hole=3))

    assert verdict.violated == "the end"
    assert verdict.trace in (
        ["foot: plus 1", "foot: plus 2"],
        ["foot: plus 2", "foot: plus 1"],
        ["foot: plus 2", "foot: falls"],
    )


def test_a_change_that_the_package_does_not_know_is_a_flaw():
    verdict = explore(Steps(statuses={0: "ready", 1: "running", 2: "completed"}))

    assert verdict.violated == UNKNOWN_TRANSITION
    assert verdict.detail == "turn: ready to completed"
    assert verdict.trace == ["foot: plus 2"]


@pytest.mark.parametrize(("limit", "said"), [(3, "as far as"), (7, "holds")])
def test_a_limit_ends_the_search_and_is_said(limit, said):
    verdict = explore(Steps(), limit=limit)

    assert verdict.complete is (limit == 7)
    assert said in str(verdict)

"""The mutants of all models: one guard left out, or two that stand in for each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.model import remote, thread
from tests.model.explore import Model
from tests.model.turn import TurnModel
from tests.model.turn import mutants as turn


@dataclass(frozen=True)
class Mutant:
    """A model without some guards, and the promise that has to break in it."""

    model: Model[Any]
    without: tuple[str, ...]
    breaks: str


@dataclass(frozen=True)
class Survivor:
    """A model without a guard in which every promise holds, and why."""

    model: Model[Any]
    without: tuple[str, ...]
    why: str


def mutants() -> list[Mutant]:
    """Return what must fail."""
    return [
        *(
            Mutant(TurnModel(one.world), tuple(one.world.without.split()), one.breaks)
            for one in turn.MUTANTS
        ),
        *(
            Mutant(thread.ThreadModel(2, without=guard), (guard,), breaks)
            for guard, breaks in thread.MUTANTS.items()
        ),
        *(
            Mutant(remote.RemoteModel(without=guard), (guard,), breaks)
            for guard, breaks in remote.MUTANTS.items()
        ),
    ]


def survivors() -> list[Survivor]:
    """Return what is known to hold, each guard being covered by another."""
    return [
        *(
            Survivor(TurnModel(one.world), tuple(one.world.without.split()), one.why)
            for one in turn.SURVIVORS
        ),
        *(
            Survivor(thread.ThreadModel(2, without=guard), (guard,), why)
            for guard, why in thread.SURVIVORS.items()
        ),
    ]


def guards() -> dict[str, set[str]]:
    """Return the guards of each kind of model."""
    return {
        "TurnModel": set(turn.GUARDS),
        "ThreadModel": set(thread.GUARDS),
        "RemoteModel": set(remote.GUARDS),
    }

"""Which worlds are explored: small ones in every test run, all of them on request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.explore import Model
from tests.model.remote import RemoteModel
from tests.model.thread import ThreadModel
from tests.model.turn import TurnModel
from tests.model.turn.script import World

SMALL = [
    # One call of each mode, gated and free, with everything that may go wrong.
    World("U", started_here=True),
    World("U", edits=True, forgeries=1, zombies=0),
    World("U", strict=True),
    World("T", started_here=True),
    World("I"),
    World("L"),
    World("L", strict=True),
    *(World(mode) for mode in "util"),
    World("U", sleepers=True, oddities=0),
    # What calls and questions do to each other.
    World("UU", reopenings=0),
    World("TU", oddities=0),
    World("uU", reopenings=0),
    World("Q|U", reopenings=0),
]
"""Seconds each; they still take every transition and every move."""

_PAIRS = [
    "UU",
    "UT",
    "TU",
    "TT",
    "II",
    "LL",
    "TI",
    "IT",
    "TL",
    "LT",
    "IU",
    "UI",
    "LU",
    "UL",
    "IL",
    "LI",
]
_FREE = ["uUU", "tUU", "iUU", "lUU", "uTT", "uI", "uL"]
_BATCHES = ["U|U", "Q|UU", "Q|TU", "UU|Q"]

FULL = [
    *(World(pair) for pair in _PAIRS),
    *(World(pair, strict=True) for pair in ["UU", "LU", "UL", "LL", "II", "IL"]),
    *(World(script) for script in (*_FREE, *_BATCHES)),
    *(World(mode, sleepers=True) for mode in "UIL"),
    World("UU", crashes=2, zombies=2),
    World("UU", strict=True, crashes=2, zombies=2),
    World("UU", reopenings=2),
    World("TU", reopenings=2),
    World("UU", edits=True),
    World("UU", edits=True, forgeries=1, oddities=0),
    World("TU", edits=True, forgeries=1),
    *(World(m, crashes=2, zombies=2, reopenings=2, oddities=2) for m in "UTIL"),
    *(
        World(mode, strict=True, crashes=2, zombies=2, reopenings=2, oddities=2)
        for mode in "UIL"
    ),
]
"""A quarter of an hour on two cores."""


def small() -> Iterator[Model[Any]]:
    """Yield the models of every test run."""
    yield RemoteModel()
    yield ThreadModel(2)
    for world in SMALL:
        yield TurnModel(world)


def full() -> Iterator[Model[Any]]:
    """Yield every model, the small ones included."""
    yield from small()
    yield ThreadModel(3)
    for world in FULL:
        yield TurnModel(world)

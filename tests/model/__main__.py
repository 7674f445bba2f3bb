"""Explores every model in full and prints what was found: `python -m tests.model`.

With arguments only those whose name contains one of them, each with its trace if a
promise breaks: `python -m tests.model "UU strict"`, `python -m tests.model mutants`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from tests.model import worlds
from tests.model.explore import Model, Verdict, explore
from tests.model.mutants import mutants, survivors


def _chosen(wanted: Sequence[str]) -> list[tuple[Model[Any], str]]:
    """Return the models to explore, each with the promise that should break in it."""
    if list(wanted) == ["mutants"]:
        named = [(one.model, one.breaks) for one in mutants()]
        return named + [(one.model, "") for one in survivors()]
    every = [(model, "") for model in worlds.full()]
    if not wanted:
        return every
    return [pair for pair in every if any(text in pair[0].name for text in wanted)]


def _explored(pair: tuple[Model[Any], str]) -> tuple[Verdict, bool]:
    model, breaks = pair
    verdict = explore(model)
    return verdict, verdict.violated == breaks


def main(wanted: Sequence[str]) -> int:
    """Explore on every core; return 1 if anything is not as it should be."""
    started = time.monotonic()
    wrong = states = moves = 0
    print(Verdict.HEADER)
    with ProcessPoolExecutor() as pool:
        for verdict, expected in pool.map(_explored, _chosen(wanted)):
            print(verdict, flush=True)
            states, moves = states + verdict.states, moves + verdict.moves
            if not expected:
                wrong += 1
                print(*verdict.told(), sep="\n", flush=True)
    took = time.monotonic() - started
    print(f"\n{states:,} states, {moves:,} moves, {took:.0f} s: ", end="")
    print(f"{wrong} not as expected" if wrong else "all as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

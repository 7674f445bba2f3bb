"""The protocol holds in every order of every move, and its guards are all needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from hitl_approvals import failpoints, transitions
from hitl_approvals.transitions import BIRTH
from tests.model import process_steps, worlds
from tests.model.explore import TABLES, Verdict, explore
from tests.model.mutants import guards, mutants, survivors
from tests.workspace import ROOT

_COPIED = "a copy in a fork, of a row that ended: no move of anybody follows"
OUT_OF_SCOPE: dict[tuple[str, str, str], str] = {
    ("interrupt", BIRTH, "resolved"): _COPIED,
    ("interrupt", BIRTH, "cancelled"): _COPIED,
}
"""Transitions of the tables that no model takes, and why."""

MODELS = list(worlds.small())
_verdicts: dict[str, Verdict] = {}


def verdict_of(model) -> Verdict:
    """Explore a model once in a test run, whatever the order of the tests."""
    if model.name not in _verdicts:
        _verdicts[model.name] = explore(model)
    return _verdicts[model.name]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_promise_holds_in_every_state(model):
    verdict = verdict_of(model)

    assert verdict.holds, "\n".join(verdict.told())
    assert verdict.complete
    assert verdict.states > 50


def test_the_models_take_exactly_the_transitions_of_the_tables():
    taken = set().union(*(verdict_of(model).transitions for model in MODELS))
    allowed = {
        (name, from_, to)
        for name, table in TABLES.items()
        for from_, after in table.items()
        for to in after
    }

    assert taken | set(OUT_OF_SCOPE) == allowed
    assert not taken & set(OUT_OF_SCOPE)


def test_the_models_look_at_every_table_of_the_package():
    tables = {
        name
        for name, value in vars(transitions).items()
        if name.isupper() and isinstance(value, Mapping)
    }

    assert tables == {name.upper() for name in TABLES}


@pytest.mark.parametrize(
    "mutant", mutants(), ids=lambda one: f"{type(one.model).__name__}-{one.model.name}"
)
def test_a_guard_that_is_left_out_breaks_a_promise(mutant):
    verdict = explore(mutant.model)

    assert verdict.violated == mutant.breaks, "\n".join(verdict.told())


@pytest.mark.parametrize(
    "survivor",
    survivors(),
    ids=lambda one: f"{type(one.model).__name__}-{one.model.name}",
)
def test_a_guard_that_another_covers_is_known(survivor):
    verdict = explore(survivor.model)

    assert verdict.holds, "\n".join(verdict.told())
    assert survivor.why


def test_every_guard_is_left_out_somewhere_and_noticed_alone_or_with_another():
    noticed: dict[str, set[str]] = {name: set() for name in guards()}
    for mutant in mutants():
        noticed[type(mutant.model).__name__] |= set(mutant.without)
    covered = {
        (type(one.model).__name__, guard)
        for one in survivors()
        for guard in one.without
    }

    for name, known in guards().items():
        assert noticed[name] <= known
        for guard in known - noticed[name]:
            assert (name, guard) in covered


def test_every_move_of_the_models_has_its_place_in_the_crash_matrix():
    made = set().union(*(verdict_of(model).labels for model in MODELS))
    places = Counter(
        label
        for table in (
            process_steps.POINTS_OF,
            process_steps.WITHOUT_POINT,
            process_steps.OTHERS,
        )
        for label in table
    )

    assert set(places) == made
    assert {label for label, count in places.items() if count > 1} == set()
    assert not made & set(process_steps.ONLY_IN_MUTANTS)


def test_every_failpoint_stands_at_a_move_of_a_model():
    named = {point for points in process_steps.POINTS_OF.values() for point in points}

    assert named == set(failpoints.POINTS)
    assert all(process_steps.POINTS_OF.values())


def test_every_failpoint_is_reached_in_the_package():
    text = "".join(
        path.read_text() for path in sorted((ROOT / "hitl_approvals").rglob("*.py"))
    )

    unreached = [p for p in failpoints.POINTS if f'reach("{p}")' not in text]
    assert unreached == []

"""The page of guarantees: each sentence has its test, each figure the form it must have."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.crash import cases
from tests.docs.blocks import DOCS, README, ROOT
from tests.docs.tables import tables_of

PAGE = DOCS / "explanation" / "guarantees.md"
SECTIONS = ("Provable", "Conditional", "Not claimed")
_TEST = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<name>test_\w+)`")


@cache
def names_in(path: str) -> set[str]:
    """Return the names of the tests that a module defines."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def rows() -> list[dict[str, str]]:
    tables = tables_of(PAGE)
    return [row for section in SECTIONS for row in tables[section]]


def test_every_sentence_names_tests_that_exist() -> None:
    wrong = []
    for row in rows():
        named = list(_TEST.finditer(row["tests"]))
        if not named:
            wrong.append(f"no test: {row['sentence']}")
        wrong += [
            match[0] for match in named if match["name"] not in names_in(match["path"])
        ]

    assert rows()
    assert wrong == []


def test_what_the_readme_promises_has_its_sentence_here_under_the_same_heading() -> (
    None
):
    tables = tables_of(PAGE)
    heading = "What is promised, and what is not"
    wrong = []
    for row in tables_of(README)[heading]:
        standing = row["standing"]
        if standing == "provable":
            section = "Provable"
        elif standing.startswith(("while", "unless")):
            section = "Conditional"
        else:
            section = "Not claimed"
        sentences = [one["sentence"] for one in tables[section]]
        # What is not claimed says there what of: the model's own calls *once*.
        if not any(sentence.startswith(row["promise"]) for sentence in sentences):
            wrong.append((section, row["promise"]))

    assert wrong == []


def test_the_figures_are_lines_in_which_nothing_was_lost_or_doubled() -> None:
    text = PAGE.read_text(encoding="utf-8")
    crash = re.search(
        r"^crash matrix: cases=(\d+) lost=0 doubled=0 wrong=0$", text, re.MULTILINE
    )
    chaos = re.search(
        r"^chaos: turns=(\d+) kills=(\d+) lost=0 doubled=0 in_doubt=\d+$",
        text,
        re.MULTILINE,
    )
    bench = re.search(
        r"^bench cycle: cycles_per_s=[\d.]+ commits=7 statements=27 floor_commits=7 "
        r"floor_statements=27 ratio=[\d.]+$",
        text,
        re.MULTILINE,
    )

    assert crash is not None
    # Cases that are younger than the last full run are named until the next one.
    joined = re.search(r"Since that run (\d+) cases have joined", text)
    younger = 0 if joined is None else int(joined[1])
    assert int(crash[1]) + younger == len(cases.matrix())
    assert chaos is not None
    assert int(chaos[2]) > 0
    assert bench is not None

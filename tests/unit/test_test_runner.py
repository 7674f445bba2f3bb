from __future__ import annotations

import re
import tomllib

import pytest

from scripts.placement import NO_DATABASE, ON_POSTGRESQL, ON_SQLITE
from scripts.test import is_closing_line, suites
from tests.workspace import ROOT


@pytest.mark.parametrize(
    "line",
    [
        "======= 3 passed in 0.12s =======\n",
        "4 passed in 0.77s",
        "=== 1 failed, 2 passed, 3 skipped, 4 deselected in 61.20s (0:01:01) ===",
        "==== 2 errors in 0.10s ====",
        "==== no tests ran in 0.01s ====",
        "\x1b[32m=== \x1b[32m\x1b[1m3 passed\x1b[0m\x1b[32m in 0.10s\x1b[0m\x1b[32m ===\x1b[0m",
    ],
)
def test_pytests_closing_line_is_known(line):
    assert is_closing_line(line)


@pytest.mark.parametrize(
    "line",
    ["====== FAILURES ======", "tests/unit/test_x.py .... [100%]", "3 passed", ""],
)
def test_other_lines_are_no_closing_line(line):
    assert not is_closing_line(line)


def test_every_suite_that_is_left_out_is_named_with_a_make_target():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    left_out = re.findall(r"\w+", project["tool"]["pytest"]["addopts"][-1])[1:]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    named = {suite.marker: suite.target for suite in suites()}

    assert sorted(named) == sorted(set(left_out) - {"or"})
    assert set(named.values()) <= set(targets)


def test_whatever_is_played_once_is_there():
    placed = {*NO_DATABASE, *ON_SQLITE, *ON_POSTGRESQL}

    assert [path for path in placed if not (ROOT / path).exists()] == []
    assert set(ON_SQLITE).isdisjoint(ON_POSTGRESQL)
    assert set(NO_DATABASE) <= {*ON_SQLITE, *ON_POSTGRESQL}

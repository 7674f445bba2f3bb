"""The crash matrix: complete on paper, played in short here, and able to fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from hitl_approvals.enums import ToolMode
from hitl_approvals.failpoints import POINTS
from tests.crash import cases, misfortunes
from tests.e2e.databases import on_postgresql, once
from tests.workspace import ROOT

LAST_LINE = r"crash matrix: cases=(\d+) lost=(\d+) doubled=(\d+) wrong=(\d+)"


def play(*arguments: str, seconds: float = 120, **environment: str) -> tuple[int, str]:
    """Run the command and return its exit code and its output."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
    )
    return done.returncode, done.stdout


def counts(output: str) -> tuple[int, ...]:
    """Read the last line, which has to be exactly as promised."""
    line = re.fullmatch(LAST_LINE, output.splitlines()[-1])
    assert line is not None, output
    return tuple(map(int, line.groups()))


def test_every_failpoint_is_in_the_matrix() -> None:
    assert {case.point for case in cases.rows()} == set(POINTS)


def test_every_mode_passes_every_point_that_it_can_pass() -> None:
    passed = {(case.point, case.mode) for case in cases.rows()}
    in_a_call = {"gate", "tool", "record"}

    for point in POINTS:
        place = point.partition(".")[0]
        modes = set(ToolMode.values)
        if place in in_a_call:
            modes = set(cases.LEDGERED)
        elif place == "transaction":
            modes = {"transactional"}
        elif place in ("settle", "request"):
            modes = {"unsafe"}
        elif place in cases.REMOTE_MOVES:
            modes = {cases.REMOTE}

        assert {mode for at, mode in passed if at == point} == modes, point


def test_every_row_is_played_in_every_way() -> None:
    played = cases.matrix()
    silent = sum(row.point == "announce.before_publish" for row in cases.rows())
    rows = sum(1 for _ in cases.rows())

    # Without a broker nothing is announced.
    assert len(played) == rows * 8 - silent * 4
    assert len({case.name for case in played}) == len(played)


@pytest.mark.e2e
def test_a_telling_few_of_the_crashes_lose_and_double_nothing() -> None:
    database = "postgresql" if on_postgresql() else "sqlite"

    code, output = play("--trimmed", "--database", database)

    played, *faults = counts(output)
    assert (code, faults) == (0, [0, 0, 0]), output
    assert played == len(cases.trimmed()) / 2


@pytest.mark.e2e
def test_messages_that_are_lost_doubled_or_late_change_nothing(redis_url: str) -> None:
    database = "postgresql" if on_postgresql() else "sqlite"

    code, output = play(
        "--outside", "--database", database, HITL_TEST_REDIS_URL=redis_url
    )

    _played, *faults = counts(output)
    assert (code, faults) == (0, [0, 0, 0]), output


def test_every_misfortune_is_played() -> None:
    played = {case.point for case in cases.outside()}

    assert played == set(misfortunes.BEFALL) == set(cases.MISFORTUNES)


@once
@pytest.mark.e2e
def test_the_matrix_finds_every_fault_that_is_planted() -> None:
    code, output = play("--faults", "--patience", "8")

    assert code == 0, output
    assert output.splitlines()[-1] == "crash faults: planted=5 found=5"


@once
@pytest.mark.crash
def test_no_crash_anywhere_loses_or_doubles_anything() -> None:
    code, output = play(seconds=3600)

    _played, *faults = counts(output)
    assert (code, faults) == (0, [0, 0, 0]), output

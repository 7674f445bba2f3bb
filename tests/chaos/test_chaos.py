"""Storms of a few seconds, each of one kind, and one that has to be noticed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.e2e.databases import once
from tests.workspace import ROOT

LAST_LINE = r"chaos: turns=(\d+) kills=(\d+) lost=(\d+) doubled=(\d+) in_doubt=(\d+)"

# On a server of its own, whatever the suite runs on.
pytestmark = [pytest.mark.chaos, once]


def storm(*arguments: str) -> tuple[int, dict[str, int], str]:
    """Run the command; return its exit code, its sums and its output."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    line = re.fullmatch(LAST_LINE, done.stdout.splitlines()[-1])
    assert line is not None, done.stdout
    names = ("turns", "kills", "lost", "doubled", "in_doubt")
    return (
        done.returncode,
        dict(zip(names, map(int, line.groups()), strict=True)),
        done.stdout,
    )


@pytest.mark.parametrize(
    "deeds", ["postgres", "valkey", "backend", "pause", "kill", "terminate"]
)
def test_nothing_is_lost_or_doubled_in_a_storm(deeds: str) -> None:
    code, sums, output = storm("--seconds", "15", "--only", deeds)

    assert code == 0, output
    assert (sums["lost"], sums["doubled"]) == (0, 0)
    assert min(sums["turns"], sums["kills"]) > 0


def test_a_site_that_repeats_calls_is_found_out() -> None:
    code, sums, output = storm("--seconds", "10", "--fault", "unwritten")

    assert code == 1, output
    assert sums["doubled"] > 0

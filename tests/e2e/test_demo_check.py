"""`manage.py demo --check` as a person or a pipeline runs it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from example_project.demo import pauses
from tests.e2e.databases import on_postgresql, once
from tests.workspace import ROOT

SECONDS = 60

pytestmark = pytest.mark.e2e


def check(environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run the command and return its exit code and its output."""
    done = subprocess.run(
        [sys.executable, "manage.py", "demo", "--check", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=2 * SECONDS,
    )
    return done.returncode, done.stdout


def counts(output: str) -> tuple[int, ...]:
    """Read the last line, which has to be exactly as promised."""
    line = re.fullmatch(
        r"demo check: effects=(\d+) resolved=(\d+) kills=(\d+) seconds=(\d+)",
        output.splitlines()[-1],
    )
    assert line is not None, output
    return tuple(map(int, line.groups()))


def test_refund_is_made_once_by_workers_that_are_killed_twice(
    environment: dict[str, str],
) -> None:
    """On SQLite just as the README has it; on PostgreSQL killed before the commit."""
    point = pauses.AFTER_COMMIT
    if on_postgresql():
        point = pauses.BEFORE_COMMIT
        environment["DJANGO_SETTINGS_MODULE"] = "tests.e2e.hasty"

    code, output = check(environment, "--kill", point)

    *what, seconds = counts(output)
    assert (code, what) == (0, [1, 1, 2]), output
    assert seconds < SECONDS


@once
def test_whatever_is_broken_shows_in_the_counts_and_in_the_exit_code(
    environment: dict[str, str],
) -> None:
    environment["DJANGO_SETTINGS_MODULE"] = "tests.e2e.broken.settings"

    code, output = check(environment)

    *what, _seconds = counts(output)
    assert (code, what) == (1, [2, 2, 1]), output

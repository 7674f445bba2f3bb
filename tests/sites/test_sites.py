"""Sites that are set up in other ways: each one's own tests, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.db import connection

from tests.sites.database import VARIABLE
from tests.workspace import ROOT, RUN_VARIABLE

SECONDS = 120
SETTINGS = {"sqlite": "sqlite", "postgresql": "postgres", "mysql": "mariadb"}


@pytest.mark.parametrize(
    "site", ["atomic_requests", "custom_user", "two_databases", "unfold"]
)
def test_site_as_it_is(site: str) -> None:
    environment = {**os.environ, VARIABLE: SETTINGS[connection.vendor]}
    # A run of its own: it must not meet the database of this one.
    environment.pop(RUN_VARIABLE, None)
    environment.pop("PYTEST_ADDOPTS", None)

    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            # None of these suites draws anything, and the library takes long to import.
            "-pno:hypothesispytest",
            f"--ds=tests.sites.{site}.settings",
            f"tests/sites/{site}/suite.py",
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout

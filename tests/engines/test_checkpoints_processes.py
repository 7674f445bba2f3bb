"""A thread that one process began goes on in another, even if the first one was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from hitl_approvals.checkpoints.models import Checkpoint, PendingWrite
from tests.workspace import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


def run(what: str, file: Path) -> subprocess.CompletedProcess[str]:
    connection.close()
    return subprocess.run(
        [sys.executable, "-m", "tests.engines.checkpoints_support", what, "t", file],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": settings.SETTINGS_MODULE},
        capture_output=True,
        text=True,
    )


def test_one_process_pauses_and_another_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "effects"
    started = run("start", file)
    assert started.stdout == "['asked', 'planned'] True\n", started.stderr
    resumed = run("resume", file)

    assert resumed.stdout == ("['asked', 'planned', 'paid: yes', 'closed'] False\n"), (
        resumed.stderr
    )
    assert file.read_text().split() == ["plan", "pay", "close"]
    assert Checkpoint.objects.count() == 5


def test_a_killed_process_is_followed_from_its_last_step(tmp_path: Path) -> None:
    file = tmp_path / "effects"
    assert run("die", file).returncode == -signal.SIGKILL
    # It waits nowhere yet, but has something to do: retention leaves it alone.
    assert Checkpoint.objects.latest("checkpoint_id").has_next
    went_on = run("go_on", file)

    assert went_on.stdout == "['asked', 'planned'] True\n", went_on.stderr
    assert run("resume", file).returncode == 0
    assert file.read_text().split() == ["plan", "pay", "close"]


@pytest.mark.parametrize(("when", "steps"), [("before", 1), ("after", 2)])
def test_what_a_run_saves_together_is_there_or_not(
    when: str, steps: int, tmp_path: Path
) -> None:
    file = tmp_path / "effects"
    assert run(when, file).returncode == -signal.SIGKILL

    # The graph's own first step, saved with its input, and perhaps the node's.
    assert Checkpoint.objects.count() == steps + 1
    assert PendingWrite.objects.values("task_id").distinct().count() == steps
    assert run("go_on", file).returncode == 0
    assert run("resume", file).returncode == 0
    planned = ["plan"] if when == "after" else ["plan", "plan"]
    assert file.read_text().split() == [*planned, "pay", "close"]

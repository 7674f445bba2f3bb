from __future__ import annotations

import os
import subprocess
import sys

from tests import workspace


def gone_pid() -> str:
    child = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    )
    return child.stdout.strip()


def test_a_child_process_inherits_the_name_of_the_run(monkeypatch):
    monkeypatch.delenv(workspace.RUN_VARIABLE, raising=False)

    name = workspace.run_name()
    seen_by_child = subprocess.run(
        [sys.executable, "-c", "from tests.workspace import *; print(run_name())"],
        cwd=workspace.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert name == f"{workspace.checkout_name()}_{os.getpid()}"
    assert seen_by_child.stdout.strip() == name


def test_a_run_is_abandoned_when_its_process_is_gone():
    assert workspace.is_abandoned(f"{workspace.checkout_name()}_{gone_pid()}")


def test_files_of_a_killed_run_are_removed_and_others_stay(monkeypatch, tmp_path):
    monkeypatch.setattr(workspace.tempfile, "tempdir", str(tmp_path))
    tree = workspace.checkout_name()
    own = tmp_path / f"hitl-tests-{tree}_{os.getpid()}.sqlite3"
    killed = tmp_path / f"hitl-tests-{tree}_{gone_pid()}.sqlite3-wal"
    for path in (own, killed):
        path.touch()

    workspace.remove_abandoned_files()

    assert list(tmp_path.iterdir()) == [own]


def test_a_run_whose_process_lives_is_not_abandoned():
    assert not workspace.is_abandoned(f"{workspace.checkout_name()}_{os.getpid()}")


def test_what_another_tree_made_is_never_called_abandoned():
    assert not workspace.is_abandoned("00000000_999999999")
    assert not workspace.is_abandoned("something_else")


def test_only_databases_of_killed_runs_are_abandoned():
    tree = workspace.checkout_name()

    assert workspace.is_abandoned_database(f"test_hitl_{tree}_{gone_pid()}")
    assert not workspace.is_abandoned_database(workspace.run_database())
    assert not workspace.is_abandoned_database(f"{tree}_{gone_pid()}")
    assert not workspace.is_abandoned_database("mysql")

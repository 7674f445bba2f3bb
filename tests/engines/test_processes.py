"""A run of the tests that is ended in the middle leaves no engine behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.dbos_support import Database
from tests.engines.processes import until
from tests.workspace import ROOT, RUN_VARIABLE, remove_files, run_name

pytestmark = pytest.mark.engines

A_TEST = "test_an_engine_that_is_down_is_waited_for_and_shown"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A name for another run, of which nothing stays."""
    name = f"{run_name()}_ended"
    monkeypatch.setenv(RUN_VARIABLE, name)
    yield name
    remove_files(name)


def those_of(folder: Path) -> list[str]:
    """Return the commands of all processes that work in a folder, but for pytest's."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = place.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(folder) in command and "-m pytest" not in command:
            found.append(command)
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize(
    ("module", "processes"), [("temporal", 1), ("restate", 2), ("dbos", 1)]
)
def test_its_servers_end_with_it(
    module: str, processes: int, number: signal.Signals, tmp_path: Path, run: str
) -> None:
    folder = tmp_path / "engine"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "engines", "-k", A_TEST]
    command += ["--ds=tests.settings.sqlite", f"--basetemp={folder}"]
    command += ["-p", "no:cacheprovider", f"tests/engines/test_{module}.py"]
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
    try:
        assert until(
            lambda: process.poll() is not None or len(those_of(folder)) == processes,
            seconds=90,
        )
        assert process.poll() is None, log.read_text()
        process.send_signal(number)
        assert process.wait(30) == -number

        assert until(lambda: not those_of(folder)), those_of(folder)
    finally:
        process.kill()
        process.wait()
        if module == "dbos":
            abandoned = Database("dbos")
            abandoned.name = f"test_hitl_{run}_dbos_{process.pid}"
            with abandoned:
                assert os.environ[RUN_VARIABLE] == run

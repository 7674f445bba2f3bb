"""A server that a test started does not outlive it, however it ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from tests.servers.bound import bound
from tests.workspace import ROOT

STARTS = """
import signal, subprocess, sys
from tests.servers.bound import bound
waits = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
subprocess.Popen(bound([sys.executable, "-c", waits]))
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_dies_with_whoever_started_it(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        try:
            parent.send_signal(number)
            parent.wait(10)
            # A pidfd can be read once its process has ended.
            assert select.select([child], [], [], 10)[0]
        finally:
            os.close(child)


def test_it_is_the_command_itself_and_ends_as_that_does() -> None:
    prints = "import os, sys; print(os.getpid(), sys.argv[1:]); sys.exit(3)"
    process = subprocess.Popen(
        bound([sys.executable, "-c", prints, "a b"]),
        stdout=subprocess.PIPE,
        text=True,
    )
    said, _ = process.communicate(timeout=10)

    assert said == f"{process.pid} ['a b']\n"
    assert process.returncode == 3


def test_nothing_is_started_for_a_process_that_is_gone_already() -> None:
    command = bound([sys.executable, "-c", "print('started')"])
    command[3] = "1"

    ended = subprocess.run(command, capture_output=True, text=True, timeout=10)

    assert (ended.returncode, ended.stdout) == (0, "")

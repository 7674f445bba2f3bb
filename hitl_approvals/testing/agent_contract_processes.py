"""Other processes of a site under test: started once, forked for every run."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections

from hitl_approvals.testing import agent_child

_SECONDS = 2 * agent_child.SECONDS
"""What the first answer may take: whole frameworks are imported before it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How one run in a process of its own ended."""

    pid: int
    signal: int
    """What it was killed by; 0 if it ended by itself."""
    code: int
    outcome: str
    """What `run_turn` returned."""


class OtherProcesses:
    """Starts the process that others are forked from; close it at the end.

    Args:
        contract: `module:Class`, which declares the same agents there as here.
    """

    def __init__(self, contract: str) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self._process = subprocess.Popen(  # noqa: S603  the test's own interpreter
            [sys.executable, "-m", agent_child.__name__, contract],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **_environment()},
        )

    def play(self, runs: Sequence[Mapping[str, Any]]) -> list[Ended]:
        """Run each in a process of its own, all from the same moment on.

        Raises:
            AssertionError: One ended in a way that nobody planned; with its log.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps({'runs': list(runs)})}\n".encode())
        self._process.stdin.flush()
        ended = [Ended(**one) for one in json.loads(self._line())]
        failed = [one for one in ended if not one.signal and one.code]
        assert not failed, f"{failed}\n{self._told()}"
        return ended

    def close(self) -> None:
        """End the process: it has nothing more to read."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        handle, line = self._process.stdout.fileno(), b""
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([handle], [], [], _SECONDS)
            assert readable, f"No answer.\n{self._told()}"
            part = os.read(handle, 65_536)
            assert part, f"The process is gone.\n{self._told()}"
            line += part
        return line

    def _told(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")


def _environment() -> dict[str, str]:
    """Return what leads another process to the same code and the same test database."""
    names = {
        alias: str(connections[alias].settings_dict["NAME"]) for alias in connections
    }
    shared = [
        name for name in names.values() if ":memory:" in name or "mode=memory" in name
    ]
    assert not shared, (
        "The test database is in this process's memory, and the agent contract starts "
        'others. Name a file in DATABASES[...]["TEST"]["NAME"].'
    )
    return {
        agent_child.DATABASES: json.dumps(names),
        "PYTHONPATH": os.pathsep.join(part for part in sys.path if part),
    }

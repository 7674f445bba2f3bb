"""Child processes that can be stopped or killed for certain. Knows no Django."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
STOP_SECONDS = 8


class ProcessEndedError(RuntimeError):
    """A process that should be running is not."""


class Process:
    """A child in a session of its own, with everything that it starts.

    Ctrl-C in the terminal does not reach it: it ends when it is told to.
    """

    def __init__(
        self, name: str, command: Sequence[str], *, env: Mapping[str, str], log: Path
    ) -> None:
        self.name = name
        self.log = log
        self._gone = False
        with log.open("ab") as output:
            self._child = subprocess.Popen(  # noqa: S603  our own commands
                command,
                cwd=ROOT,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Process id, and id of the group."""
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        """What the child left with; None while it runs."""
        return self._child.poll()

    def check(self) -> None:
        """Raise if the child has ended.

        Raises:
            ProcessEndedError: It has; the text holds the end of its log.
        """
        code = self.returncode
        if code is not None:
            raise ProcessEndedError(
                f"The {self.name} ended with {code}:\n{end_of(self.log)}"
            )

    def stop(self) -> None:
        """Ask the child to end; kill what is left of its group after a while."""
        if self._gone:
            return
        if self.returncode is None:
            # Only the child itself is told: its own children are its business.
            self._child.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(STOP_SECONDS)
        self.kill()

    def kill(self) -> int:
        """Kill the whole group at once, as a crash would, and return the exit code."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        # From here on the number may belong to somebody else.
        self._gone = True
        return self._child.wait()


def end_of(log: Path) -> str:
    """Return the last lines of a log."""
    return log.read_text(errors="replace")[-2000:]

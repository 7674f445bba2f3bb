"""Runs a command that the kernel kills as soon as whoever asked for it is gone.

    python bound.py PID COMMAND...

becomes the command, so its process keeps its number. Needs nothing but this file. Asked
for between fork and exec it would be the same, were there no threads: whoever has some
must not run Python there.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_SET_PDEATHSIG = 1


def bound(command: Sequence[str | Path]) -> list[str]:
    """Return the command that is killed when the thread that starts it ends.

    That is the kernel's rule; start it in the main thread.
    """
    launcher = [sys.executable, "-IS", str(Path(__file__).resolve()), str(os.getpid())]
    return [*launcher, *map(str, command)]


def main(parent: int, command: list[str]) -> None:
    """Become the command, unless whoever asked for it is gone by now."""
    # Where the kernel knows no such thing, the tests' own clean-up has to do.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent:
        os.execvp(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])

"""Forked processes that can be killed, stopped and continued. Starts no interpreter.

A fork of a process that has everything imported and no connection open costs a hundredth
of a new one, and thousands are needed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from django.db import connections

from hitl_approvals import failpoints
from hitl_approvals.testing.failpoints import VARIABLE, install_from_environment

POLL = 0.01
_DIE_WITH_PARENT = 1


class Child:
    """A process of the site, and whether it died as it was meant to."""

    def __init__(self, name: str, work: Callable[[], None], log: Path) -> None:
        self.name = name
        self.stopped = False
        self._status: int | None = None
        # What is open here must not be used by two.
        connections.close_all()
        self.pid = os.fork()
        if self.pid == 0:
            _run(name, work, log)

    @property
    def gone(self) -> bool:
        """Whether the process has ended, of itself or not."""
        self._look()
        return self._status is not None

    @property
    def failed(self) -> bool:
        """Whether it ended by itself, and not well."""
        return self.gone and self._status != 0

    def hit(self, number: int, *, seconds: float) -> bool:
        """Wait until the process is killed or stopped by its failpoint."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._look()
            if self._status is not None:
                killed = os.WIFSIGNALED(self._status)
                return killed and os.WTERMSIG(self._status) == number
            if self.stopped:
                return number == signal.SIGSTOP
            time.sleep(POLL)
        return False

    def wait(self, seconds: float) -> bool:
        """Wait for the process to end by itself; return whether it did."""
        deadline = time.monotonic() + seconds
        while not self.gone:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL)
        return True

    def go_on(self) -> None:
        """Continue the process, if it is stopped."""
        if self.stopped and not self.gone:
            self._send(signal.SIGCONT)
            self.stopped = False

    def end(self, seconds: float = 6) -> None:
        """Ask the process to finish what it is in; kill it if it does not."""
        if not self.gone:
            self._send(signal.SIGTERM)
            self.go_on()
            if not self.wait(seconds):
                self.kill()

    def kill(self) -> None:
        """Kill the process, as a crash would."""
        if not self.gone:
            self._send(signal.SIGKILL)
            self.wait(10)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def _look(self) -> None:
        if self._status is not None:
            return
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            self.stopped = True
        elif pid:
            self._status = status


def arm(point: str, kind: str, mark: Path) -> None:
    """Let this process be killed or stopped at a failpoint."""
    os.environ[VARIABLE] = f"{point}:{kind}:{mark}"
    install_from_environment()


def _run(name: str, work: Callable[[], None], log: Path) -> NoReturn:
    code = 1
    try:
        die_with_parent()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        with log.open("ab", buffering=0) as output:
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
        print(f"--- {name} is {os.getpid()}", flush=True)
        failpoints.set_hook(None)
        forget_connections()
        work()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0
    except BaseException:  # noqa: BLE001  told in the log, and by the exit code
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def forget_connections() -> None:
    """Let the next query open a connection of this process's own."""
    for alias in connections:
        with suppress(AttributeError):  # there was none
            del connections[alias]


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent is gone, where it can."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)

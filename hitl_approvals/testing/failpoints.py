"""Arms the package's failpoints: kill, stop or call at a named point, once.

For test processes only. Nothing in the package imports this.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hitl_approvals import failpoints

VARIABLE = "HITL_FAILPOINT"
"""Environment of a worker under test: `<point>:<kill|stop>:<path of the mark>`."""

SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class UnknownFailpoint(ValueError):
    """There is no point of that name."""


def _require_known(point: str) -> None:
    if point not in failpoints.POINTS:
        raise UnknownFailpoint(
            f"No failpoint is called {point!r}; there are {', '.join(failpoints.POINTS)}."
        )


@contextmanager
def armed(point: str, action: Callable[[], None]) -> Iterator[None]:
    """Call `action` the first time that `point` is passed inside the block.

    Raises:
        UnknownFailpoint: There is no such point.
    """
    _require_known(point)
    waiting = [action]

    def hook(name: str) -> None:
        if name == point and waiting:
            waiting.pop()()

    failpoints.set_hook(hook)
    try:
        yield
    finally:
        failpoints.set_hook(None)


def install_from_environment() -> None:
    """Arm what `HITL_FAILPOINT` names; for the entry module of a worker under test.

    The mark is a file that is created when the point is passed. It tells the test that
    it happened, and tells a restarted worker that it has happened already.

    Raises:
        UnknownFailpoint: There is no such point.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        return
    point, kind, mark = given.split(":", 2)
    _require_known(point)
    number = SIGNALS[kind]

    def hook(name: str) -> None:
        if name == point and _first(Path(mark)):
            os.kill(os.getpid(), number)

    failpoints.set_hook(hook)


def _first(mark: Path) -> bool:
    """Create the mark, with the process's id in it; False if it is there already."""
    try:
        handle = os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return False
    try:
        os.write(handle, str(os.getpid()).encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    return True

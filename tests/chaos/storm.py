"""Keeps the site's processes up, and kills them by chance. Judges nothing."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.crash.children import Child
from tests.servers.own import OwnPostgres, OwnValkey

_CHILD_SUBREAPER = 36

LONGEST_PAUSE = 5.0
"""More than two leases."""


class Storm:
    """A site of several processes and two servers, and what befalls them."""

    def __init__(
        self,
        roles: dict[str, Callable[[], None]],
        postgres: OwnPostgres,
        valkey: OwnValkey,
        folder: Path,
        seed: int,
    ) -> None:
        self.kills: Counter[str] = Counter()
        self._roles = roles
        self._postgres, self._valkey = postgres, valkey
        self._folder = folder
        self._chance = random.Random(seed)
        self._children: dict[str, Child] = {}
        self._paused: list[tuple[float, int]] = []

    def keep_up(self) -> None:
        """Start what is not there, and wake what has slept long enough."""
        for name, work in self._roles.items():
            child = self._children.get(name)
            if child is None or child.gone:
                child = Child(name, work, self._folder / f"{name}.log")
                self._children[name] = child
        now = time.monotonic()
        for until, pid in list(self._paused):
            if now >= until:
                # Harmless should the number be somebody else's: it is for the stopped.
                self._send(pid, signal.SIGCONT)
                self._paused.remove((until, pid))

    def strike(self, only: str = "") -> None:
        """Do one bad thing, of those whose name contains `only`."""
        deeds = {
            self._kill: 30,
            self._kill_in_pool: 12,
            self._pause: 20,
            self._terminate: 6,
            self._restart_postgres: 2,
            self._kill_backend: 1,
            self._kill_valkey: 3,
            self._flush_valkey: 3,
        }
        chosen = {deed: often for deed, often in deeds.items() if only in deed.__name__}
        (deed,) = self._chance.choices(list(chosen), list(chosen.values()))
        deed()

    def wait(self) -> float:
        """Return for how long nothing bad happens now."""
        return self._chance.uniform(0.1, 1.5)

    def pass_by(self) -> None:
        """Wake everybody; from here on nothing bad happens."""
        self._paused = [(0.0, pid) for _, pid in self._paused]
        self.keep_up()

    def end(self) -> None:
        """Kill every process that was started, and what a killed one left behind."""
        for child in self._children.values():
            child.kill()
        servers = {self._postgres.pid, self._valkey.pid}
        # By who its parent is, never by a number that was noted earlier: that may belong
        # to somebody else by now.
        while left := set(_children_of(os.getpid())) - servers - _zombies():
            for pid in left:
                self._send(pid, signal.SIGKILL)
            time.sleep(0.1)

    # --- the deeds --------------------------------------------------------------------

    def _kill(self) -> None:
        child = self._one()
        self._note(f"kill {child.name}")
        child.kill()

    def _kill_in_pool(self) -> None:
        pool = self._pool()
        if pool:
            self._note("kill a pool process")
            self._send(self._chance.choice(pool), signal.SIGKILL)

    def _pause(self) -> None:
        pids = [child.pid for child in self._children.values()] + self._pool()
        pid = self._chance.choice(pids)
        self._note("stop and continue")
        self._send(pid, signal.SIGSTOP)
        until = time.monotonic() + self._chance.uniform(0.3, LONGEST_PAUSE)
        self._paused.append((until, pid))

    def _terminate(self) -> None:
        child = self._one()
        self._note(f"terminate {child.name}")
        self._send(child.pid, signal.SIGTERM)

    def _restart_postgres(self) -> None:
        number = self._chance.choice((signal.SIGKILL, signal.SIGQUIT, signal.SIGINT))
        self._note(f"restart PostgreSQL ({number.name})")
        self._postgres.send(number)
        time.sleep(self._chance.uniform(0, 2))
        self._postgres.bring_up()

    def _kill_backend(self) -> None:
        # One that serves a connection: PostgreSQL 18 was seen never to come back from the
        # death of a process that is part of its recovery.
        everyone = _children_of(self._postgres.pid)
        backends = [pid for pid in everyone if _serves_a_connection(pid)]
        if backends:
            self._note("kill a process of PostgreSQL")
            # It stops all the others, and recovers.
            self._send(self._chance.choice(backends), signal.SIGKILL)

    def _kill_valkey(self) -> None:
        self._note("kill Valkey")
        self._valkey.send(signal.SIGKILL)
        time.sleep(self._chance.uniform(0, 2))
        self._valkey.bring_up()

    def _flush_valkey(self) -> None:
        self._note("flush Valkey")
        self._valkey.say("FLUSHALL")

    # --- whom it befalls --------------------------------------------------------------

    def _one(self) -> Child:
        return self._chance.choice(list(self._children.values()))

    def _pool(self) -> list[int]:
        pids = []
        for name, child in self._children.items():
            if name.startswith("celery"):
                pids += _children_of(child.pid)
        return pids

    def _note(self, deed: str) -> None:
        self.kills[deed] += 1

    @staticmethod
    def _send(pid: int, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def adopt_orphans() -> None:
    """Become the parent of what a killed child of ours leaves behind, where possible."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1)


def _zombies() -> set[int]:
    """Return which children have ended and only wait to be reaped."""
    dead = set()
    for pid in _children_of(os.getpid()):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state == "Z":
            dead.add(pid)
    return dead


def _serves_a_connection(pid: int) -> bool:
    try:
        title = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False
    # The user, the database and the client's address stand in its title.
    return title.startswith("postgres: postgres ") and "127.0.0.1(" in title


def _children_of(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]

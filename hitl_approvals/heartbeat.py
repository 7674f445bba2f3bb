"""Keeps a run's lease alive from a thread and a connection of its own."""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import suppress
from types import TracebackType

from django.db import Error, connections

from hitl_approvals.conf import hitl_settings
from hitl_approvals.services import turns
from hitl_approvals.services.run import Run
from hitl_approvals.services.transactions import alias

logger = logging.getLogger("hitl_approvals")


class Heartbeat:
    """Extends the lease every third of it; a lost one stops the run before its next gate.

    Only a row count of 0 is a lost lease. A database that does not answer is not, nor is
    any other error: the run's own next write will tell. The thread begins when the first
    beat is due, which most runs do not live to see; it is the run's own, since a beat may
    have to wait for the run's own transaction.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._stop = threading.Event()
        self._beginning = threading.Lock()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Heartbeat:
        _starter.expect(self, after=_pause())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _starter.forget(self)
        with self._beginning:
            self._stop.set()
        if self._thread is not None:
            # One that the database never answers is left behind: at the worst it extends,
            # once, the lease of a run that died.
            self._thread.join(_pause())

    def begin(self) -> None:
        """Beat at once and from now on, unless the run has ended.

        Raises:
            RuntimeError: The process cannot have another thread.
        """
        with self._beginning:
            if self._stop.is_set():
                return
            thread = threading.Thread(
                target=self._beat,
                name=f"hitl-heartbeat-{self._run.turn.pk}",
                daemon=True,
            )
            thread.start()
            self._thread = thread

    def _beat(self) -> None:
        try:
            while not self._stop.is_set():
                if not self._is_held():
                    self._run.lost.set()
                    return
                self._stop.wait(_pause())
        finally:
            connections.close_all()

    def _is_held(self) -> bool:
        try:
            return turns.extend_lease(self._run.turn.pk, self._run.fence)
        except Exception:
            # Whatever it was: without any beats the lease would end.
            logger.warning(
                "Heartbeat of turn %s failed.", self._run.turn.pk, exc_info=True
            )
            with suppress(Error):
                connections[alias()].close()
            return True


class _Starter:
    """Begins the beating of the runs of a process, each when its first beat is due.

    One thread that waits, and never for a database, so that no run's beats wait for
    another's.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: dict[Heartbeat, float] = {}
        self._wakes_at: float | None = None
        """When the thread looks again by itself; None while it has nothing to wait for."""
        self._thread: threading.Thread | None = None

    def expect(self, beat: Heartbeat, *, after: float) -> None:
        """Let a heartbeat begin after so many seconds."""
        due = time.monotonic() + after
        with self._changed:
            self._due[beat] = due
            if self._thread is None or not self._thread.is_alive():
                self._start_thread()
            elif self._wakes_at is None or due < self._wakes_at:
                self._changed.notify()

    def forget(self, beat: Heartbeat) -> None:
        """Let a heartbeat not begin any more."""
        with self._changed:
            self._due.pop(beat, None)

    def _start_thread(self) -> None:
        thread = threading.Thread(
            target=self._begin_what_is_due, name="hitl-heartbeats", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            # The run goes on, under its fence. The next one tries again, for both.
            logger.warning("A heartbeat cannot begin.", exc_info=True)
        else:
            self._thread = thread

    def _begin_what_is_due(self) -> None:
        while True:
            for beat in self._next():
                try:
                    beat.begin()
                except RuntimeError:
                    logger.warning("A heartbeat cannot begin.", exc_info=True)
                    self.expect(beat, after=_pause())

    def _next(self) -> list[Heartbeat]:
        """Wait for something that is due, and return it."""
        with self._changed:
            while True:
                now = time.monotonic()
                found = [beat for beat, due in self._due.items() if due <= now]
                for beat in found:
                    del self._due[beat]
                if found:
                    return found
                self._wakes_at = min(self._due.values(), default=None)
                wait = None if self._wakes_at is None else self._wakes_at - now
                self._changed.wait(wait)


def _pause() -> float:
    return hitl_settings.lease.total_seconds() / 3


def _start_anew() -> None:
    global _starter
    _starter = _Starter()


_starter = _Starter()
os.register_at_fork(after_in_child=_start_anew)

"""The one thread of a process that looks at the rows that requests wait for.

It has a connection of its own, which it closes when nobody waits any more; then it ends.
It looks at all rows in one query each time, and never holds a transaction.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connections
from rest_framework.exceptions import Throttled

from hitl_approvals.api.waiting import answers
from hitl_approvals.api.waiting.kinds import Kind
from hitl_approvals.api.waiting.waiters import Waiter
from hitl_approvals.conf import hitl_settings

logger = logging.getLogger("hitl_approvals")

EVERY = 0.05
"""Seconds from one look to the next. If looking takes long, half of the time goes by
without it."""
PAUSE_MOST = 5.0
"""The longest pause after looks that failed."""
RETRY_AFTER = 5
"""Seconds after which somebody who found no place may try again."""


class Watcher:
    """Keeps who waits in this process, and answers them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: set[Waiter] = set()
        self._taken: Counter[Hashable] = Counter()
        self._thread: threading.Thread | None = None
        self._running = False
        self._hurry = threading.Event()
        self.looks = 0
        """How often it has looked at rows."""

    def __len__(self) -> int:
        """Return how many places are taken."""
        with self._lock:
            return self._taken.total()

    @contextmanager
    def waiting(self, waiter: Waiter) -> Iterator[None]:
        """Take a place for the time of the block.

        Raises:
            Throttled: All places are taken, in this process or of this account.
        """
        self._take(waiter)
        try:
            yield
        finally:
            self._leave(waiter)

    def join(self, timeout: float) -> bool:
        """Wait until the thread has ended, as it does once nobody waits."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return thread is None or not thread.is_alive()

    def _take(self, waiter: Waiter) -> None:
        most, places = hitl_settings.waiters_most, waiter.places
        with self._lock:
            if self._taken.total() >= most:
                raise Throttled(RETRY_AFTER, "Too many requests wait here already.")
            if places is not None and self._taken[waiter.account] >= places:
                raise Throttled(
                    RETRY_AFTER, f"{places} of your requests wait here, all that may."
                )
            if not self._running:
                self._thread = threading.Thread(
                    target=self._watch, name="hitl-watcher", daemon=True
                )
                self._thread.start()
                self._running = True
            waiter.begin()
            self._taken[waiter.account] += 1
            self._waiters.add(waiter)

    def _leave(self, waiter: Waiter) -> None:
        with self._lock:
            self._waiters.discard(waiter)
            self._taken -= Counter([waiter.account])
            if not self._waiters:
                self._hurry.set()

    def _watch(self) -> None:
        pause = EVERY
        try:
            while self._goes_on():
                begun = time.monotonic()
                try:
                    over = self._look()
                    looked = time.monotonic() - begun
                    answers.answer(over)
                    pause = max(EVERY - (time.monotonic() - begun), looked)
                except Exception:
                    # It must not end while somebody waits. The database's own errors
                    # are the ones to expect, and a new connection may mend them.
                    logger.warning("Rows could not be looked at.", exc_info=True)
                    connections.close_all()
                    pause = min(2 * max(pause, EVERY), PAUSE_MOST)
                    for late in self._pick(lambda one: one.until <= time.monotonic()):
                        late.keep(None)
                self._hurry.wait(self._until_next(pause))
        finally:
            with self._lock:
                self._running = False
            connections.close_all()

    def _goes_on(self) -> bool:
        with self._lock:
            self._hurry.clear()
            # Told under the lock: whoever comes now starts another thread.
            self._running = bool(self._waiters)
            return self._running

    def _until_next(self, pause: float) -> float:
        """Return how long to wait: the end of somebody's wait may come sooner."""
        with self._lock:
            soonest = min((one.until for one in self._waiters), default=0.0)
        return max(0.0, min(pause, soonest - time.monotonic()))

    def _look(self) -> list[Waiter]:
        """Read where the rows stand; return those whose wait is over."""
        self.looks += 1
        watched: dict[Kind, set[UUID]] = defaultdict(set)
        with self._lock:
            for one in self._waiters:
                watched[one.kind].add(one.pk)
        now = {
            (kind, pk): standing
            for kind, ids in watched.items()
            for pk, standing in kind.standings(ids)
        }
        late = time.monotonic()

        def is_over(one: Waiter) -> bool:
            if one.pk not in watched[one.kind]:  # came while we looked
                return False
            standing = now.get((one.kind, one.pk))
            return standing is None or one.until <= late or one.has_news(standing)

        return self._pick(is_over)

    def _pick(self, chosen: Callable[[Waiter], bool]) -> list[Waiter]:
        """Take some waiters out: nobody looks for them again, so they must be woken."""
        with self._lock:
            picked = [one for one in self._waiters if chosen(one)]
            self._waiters.difference_update(picked)
        return picked


watcher = Watcher()
"""The one of this process."""


def _begin_anew() -> None:
    """Forget, in a forked process, who came to its parent, which answers them."""
    watcher.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)

"""An agent elsewhere: what its processes and the sweeper do, with a crash in one of it.

The agent keeps its keys before it sends them, so that whoever comes after it sends the
same ones; it acts once for each decision that it was handed to act on.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from hitl_approvals.models import PendingInterrupt
from tests.crash import roles
from tests.crash.play import Failed, Play
from tests.crash.site import outside

SOON = 0.3
"""Seconds after which a request lapses, or a report is overdue, where that is played."""


class Elsewhere(Play):
    """A request from its first call to its end; one of the calls dies."""

    def play_elsewhere(self, move: str) -> None:
        """Play a request in which this move meets the crash."""
        self.crashing = move
        limits = {"lapse": "execute_within", "overdue": "outcome_within"}
        asked: dict[str, Any] = {"tool_name": "elsewhere", "args": {"amount": 10}}
        if move in limits:
            asked[limits[move]] = SOON
        self._ask_for("raise", "", asked, key=f"asks {self.folder}")
        if move == "claim":
            self._decide_call("claim", {})
        if move == "withdraw":
            self._ask_for("withdraw", "cancel/", {})
        elif move == "fetch refusal":
            self._decide_call("reject", {"reason": "Not now."})
            self._ask_for("fetch refusal", "consume/", {})
        else:
            self._approve_and_act(move)

    def _approve_and_act(self, move: str) -> None:
        self._decide_call("approve", {})
        if move == "lapse":
            self._let_the_sweeper_crash("cancelled")
            return
        self._ask_for("fetch", "consume/", {})
        if move == "give back":
            self._ask_for("give back", "give-back/", {})
            self._ask_for("fetch again", "consume/", {}, key=f"second {self.folder}")
        outside.act(case=str(self.folder), amount=10, key="", mode="elsewhere")
        if move == "overdue":
            self._let_the_sweeper_crash("in_doubt")
            self._settle_it()
            return
        status = move if move in ("failed", "unknown") else "succeeded"
        key = f"second {self.folder}" if move == "give back" else ""
        self._ask_for(status, "outcome/", {"status": status}, key=key)
        if status == "unknown":
            self._settle_it()

    def _settle_it(self) -> None:
        self.doubted = True
        self._decide_call("settle", {"answer": "happened"})

    def _ask_for(self, move: str, path: str, body: Any, *, key: str = "") -> None:
        """Send a call of the agent; the one that is to crash, twice."""
        key = key or f"first {self.folder}"
        where = "interrupts/" if move == "raise" else f"interrupts/{self._row().pk}/"
        self._once_or_twice(
            move, partial(self._send, roles.AGENT, where + path, body, key=key)
        )

    def _decide_call(self, verb: str, body: Any) -> None:
        where = f"interrupts/{self._row().pk}/{verb}/"
        self._once_or_twice(verb, partial(self._send, "reviews", where, body))

    def _once_or_twice(self, move: str, press: Any) -> None:
        if move == self.crashing:
            self._crash_at_the_door(press)
            return
        answer = self._finish_request(press())
        if answer["status"] not in (200, 201):
            raise Failed(f"{move} was answered with {answer}")

    def _let_the_sweeper_crash(self, status: str) -> None:
        time.sleep(SOON)
        self._crash(self.worker(armed=True))
        clean = self.worker()
        self.until(self._wakes_or_is(status), f"it did not become {status}")
        if self.zombie is not None:
            self.until(lambda: self._slept(1.6), "")
            self.zombie.end()
            self.zombie = None
        clean.kill()

    def _wakes_or_is(self, status: str) -> Any:
        def happened() -> bool:
            done = self._row().status == status
            self._maybe_wake(others_are_done=done)
            return done

        return happened

    def _row(self) -> PendingInterrupt:
        return PendingInterrupt.objects.get(client_ref=f"asks {self.folder}")

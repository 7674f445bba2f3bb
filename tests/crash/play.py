"""What a case is played with: doors, workers, a crash, and what comes after it."""

from __future__ import annotations

import json
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections

from hitl_approvals.enums import InterruptStatus, TurnStatus
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt, TurnStep
from tests.crash import faults, roles
from tests.crash.cases import Case
from tests.crash.children import Child, arm
from tests.crash.site import outside
from tests.crash.verdict import Seen, Verdict, judge

LEASE = 1.2
PAUSE = LEASE + 0.4
"""How long a stopped process sleeps at least: its lease has lapsed by then."""
LONGEST_PAUSE = 2 * LEASE + 0.4
"""It is continued after this even if nobody has taken over: it may hold a row."""
STEP_SECONDS = 25
"""More than SQLite's writers wait for each other."""

SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
STUCK = (TurnStatus.NEEDS_ATTENTION, TurnStatus.FAILED, TurnStatus.CANCELLED)


class Failed(Exception):
    """The case could not be played to its end; the text says what was missing."""


class Play:
    """One case from its first request to its verdict."""

    def __init__(self, case: Case, folder: Path, patience: float) -> None:
        folder.mkdir()
        self.case, self.folder, self.patience = case, folder, patience
        self.children: list[Child] = []
        self.answers: list[dict[str, Any]] = []
        self.turn_id = ""
        self.problem = ""
        self.zombie: Child | None = None
        self.stopped_at = 0.0
        self.settled: list[str] = []
        self.doubted = False
        self.crashing = ""

    def verdict(self) -> Verdict:
        started = time.monotonic()
        try:
            self.script()
        except Failed as failed:
            self.problem = str(failed)
        except Exception:  # noqa: BLE001  one case less must not be many
            self.problem = traceback.format_exc(limit=-3)
        finally:
            for child in self.children:
                child.kill()
        told = (self.turn_id, self.doubted, self.answers, self.problem)
        seen = Seen(self.case, *told, key=str(self.folder))
        verdict = judge(seen)
        verdict.seconds = time.monotonic() - started
        connections.close_all()
        if verdict.good:
            shutil.rmtree(self.folder)
        else:
            verdict.log = self._log()
        return verdict

    def script(self) -> None:
        """Play what the case says."""
        raise NotImplementedError

    # --- the crash --------------------------------------------------------------------

    def _crash(self, child: Child) -> None:
        """Wait until the armed process dies or stops, and note which."""
        number = SIGNALS[self.case.signal]
        if not child.hit(number, seconds=STEP_SECONDS):
            raise Failed(f"{child.name} did not pass {self.case.point}")
        if self.case.signal == "stop":
            self.zombie, self.stopped_at = child, time.monotonic()

    def _crash_at_the_door(self, press: Callable[..., tuple[Child, Path]]) -> None:
        """Let the site die under a request; whoever sent it sends it once more."""
        first, kept = press(armed=True)
        self._crash(first)
        again = press()
        if self.zombie is not None:
            self.until(lambda: self._slept(PAUSE), "")
            first.go_on()
            self.zombie = None
            self.answers.append(self._finish_request((first, kept)))
        self.answers.append(self._finish_request(again))

    def _slept(self, seconds: float) -> bool:
        return time.monotonic() - self.stopped_at > seconds

    # --- what comes after it ------------------------------------------------------------

    def see_through(self) -> None:
        """Let a clean worker take over, answer what people are asked, wait for the end."""
        self.worker()
        self.until(self._ended, "the turn did not end")
        if self.zombie is not None:
            # Whatever it still wants to do, it does it into a finished world.
            self.until(lambda: self._slept(PAUSE), "")
            self.zombie.end()

    def _ended(self) -> bool:
        turn = AgentTurn.objects.get(pk=self.turn_id)
        if turn.status in STUCK:
            raise Failed(f"the turn is {turn.status}: {turn.last_error}")
        waiting = turn.status == TurnStatus.SUSPENDED
        ended = turn.status == TurnStatus.COMPLETED
        self._maybe_wake(others_are_done=waiting or ended)
        if waiting:
            self._answer_for(turn)
        return ended

    def _maybe_wake(self, *, others_are_done: bool) -> None:
        zombie = self.zombie
        if zombie is None or not zombie.stopped:
            return
        # One that holds a row, or SQLite's only pen, must be woken for others to go on.
        if self._slept(PAUSE if others_are_done else LONGEST_PAUSE):
            zombie.go_on()

    def _answer_for(self, turn: AgentTurn) -> None:
        if self.zombie is not None and self.zombie.stopped:
            return
        for row in self.interrupts():
            if row.status == InterruptStatus.PENDING:
                self.approve()
            elif row.status == InterruptStatus.IN_DOUBT:
                self.doubted = True
                self._settle_honestly()

    def _settle_honestly(self) -> None:
        """Look at what happened, as a person would, and say so."""
        used = sum(answer == "happened" for answer in self.settled)
        if len(outside.calls(str(self.folder))) > used:
            self._settle_as("happened")
        else:
            self._pass_deadline()
            self._settle_as("run_again")

    def _settle_as(self, answer: str) -> None:
        told = self._finish_request(self._press_settle(answer))
        if told["status"] == 200:
            self.settled.append(answer)
        elif told["status"] != 409:
            raise Failed(f"{answer} was answered with {told}")
        # Else the row changed under the hands of whoever settled it: look again.

    # --- doors and workers ----------------------------------------------------------------

    def approve(self, **setting: str) -> None:
        answer = self._finish_request(self._press("approve", **setting))
        if answer["status"] != 200:
            raise Failed(f"the approval was answered with {answer}")

    def _press(self, decision: str, **options: Any) -> tuple[Child, Path]:
        body: dict[str, Any] = {}
        if decision == "edit":
            body = {"args": {"case": str(self.folder), "amount": 20}}
        elif decision == "reject":
            body = {"reason": "Not now."}
        row = self.interrupts().get()
        return self._send(
            "reviews", f"interrupts/{row.pk}/{decision}/", body, **options
        )

    def _press_settle(self, answer: str, **options: Any) -> tuple[Child, Path]:
        body: dict[str, Any] = {"answer": answer}
        if answer == "happened":
            landed = outside.calls(str(self.folder))[-1]
            body["result"] = {"amount": landed["amount"]}
        row = self.interrupts().get()
        # Another doubt of the same call is another answer, under a key of its own.
        options.setdefault("key", f"{self.folder} {row.generation} {answer}")
        return self._send("reviews", f"interrupts/{row.pk}/settle/", body, **options)

    def _request(self, *what: Any, **options: Any) -> dict[str, Any]:
        return self._finish_request(self._send(*what, **options))

    def _send(
        self,
        person: str,
        path: str,
        body: dict[str, Any],
        *,
        key: str = "",
        **options: Any,
    ) -> tuple[Child, Path]:
        answer = self.folder / f"answer{len(self.children)}.json"
        work = partial(roles.request, person, path, body, answer, key)
        return self.fork(f"door {path}", work, **options), answer

    def _finish_request(self, sent: tuple[Child, Path]) -> dict[str, Any]:
        self.finish(sent[0])
        answer: dict[str, Any] = json.loads(sent[1].read_text())
        return answer

    def finish(self, child: Child) -> None:
        if not child.wait(STEP_SECONDS) or child.failed:
            raise Failed(f"{child.name} did not end well")

    def worker(self, *, armed: bool = False) -> Child:
        name = "armed worker" if armed else "clean worker"
        return self.fork(name, partial(roles.worker, self.case.transport), armed=armed)

    def fork(
        self,
        name: str,
        work: Callable[[], None],
        before: Callable[[], None] | None = None,
        *,
        armed: bool = False,
        point: str = "",
        kind: str = "",
        dispatcher: str = "",
    ) -> Child:
        if armed:
            point, kind = self.case.point, self.case.signal
        mark = self.folder / f"mark{len(self.children)}"

        def child() -> None:
            if dispatcher:
                settings.HITL_APPROVALS["DISPATCHER"] = dispatcher
            faults.commit(self.case.fault)
            if before is not None:
                before()
            if point:
                arm(point, kind, mark)
            work()

        self.children.append(Child(name, child, self.folder / "log"))
        return self.children[-1]

    # --- looking ------------------------------------------------------------------------

    def _in_doubt(self) -> PendingInterrupt | None:
        return self.interrupts().filter(status=InterruptStatus.IN_DOUBT).first()

    def _pass_deadline(self) -> None:
        row = self._in_doubt()
        assert row is not None
        step = TurnStep.objects.get(interrupt=row.pk, generation=row.generation)
        left = step.hard_deadline.timestamp() - time.time() + 0.05
        time.sleep(max(left, 0))

    def interrupts(self) -> Any:
        return PendingInterrupt.objects.filter(turn=self.turn_id)

    def until(self, happened: Callable[[], bool], problem: str) -> None:
        deadline = time.monotonic() + self.patience
        while not happened():
            if time.monotonic() > deadline:
                raise Failed(problem)
            time.sleep(0.03)

    def _log(self) -> str:
        told = [f"{self.case.name}: {self.folder}"]
        if self.turn_id:
            turn = AgentTurn.objects.get(pk=self.turn_id)
            told.append(f"{turn.status} fence={turn.fence} {turn.last_error}")
            found = InterruptEvent.objects.filter(turn_id=self.turn_id)
            for event in found.order_by("at", "subject_id", "sequence"):
                told.append(f"  {event.at:%M:%S.%f} {event.type} {event.detail}")
        log = self.folder / "log"
        if log.exists():
            told.append(log.read_text(errors="replace")[-3000:])
        return "\n".join(told)

"""What happens in a case before and at its crash, phase by phase."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path
from typing import Any

from tests.crash import misfortunes, roles
from tests.crash.children import Child
from tests.crash.elsewhere import Elsewhere
from tests.crash.play import STEP_SECONDS, Failed


class Script(Elsewhere):
    """A case, from its first request to its verdict."""

    def script(self) -> None:
        """Play the phase that the case is about."""
        getattr(self, f"_{self.case.phase}")()

    # --- the phases ---------------------------------------------------------------

    def _start(self) -> None:
        self.ask()
        self._crash(self.worker(armed=True))
        self.see_through()

    def _decide(self) -> None:
        self.ask_and_run()
        self._crash_at_the_door(partial(self._press, self.case.decision))
        self.see_through()

    def _resume(self) -> None:
        self.ask_and_run()
        self.approve()
        self._crash(self.worker(armed=True))
        self.see_through()

    def _recover(self) -> None:
        self.die_in_the_call()
        self._crash(self.worker(armed=True))
        self.see_through()

    def _settle(self) -> None:
        self._doubt()
        if self.case.answer == "run_again":
            self._pass_deadline()
        self.settled.append(self.case.answer)
        self._crash_at_the_door(partial(self._press_settle, self.case.answer))
        self.see_through()

    def _again(self) -> None:
        self._doubt()
        self._pass_deadline()
        self._settle_as(self.case.answer)
        self._crash(self.worker(armed=True))
        self.see_through()

    def _sweep(self) -> None:
        if self.case.died_at:
            self.die_in_the_call()
        else:
            self.ask_and_run()
            # The hint is lost, so a sweeper has to announce the run.
            self.approve(dispatcher="worker")
        self._crash(self.worker(armed=True))
        self.see_through()

    def _call(self) -> None:
        self._crash_at_the_door(self._ask_here)
        self.turn_id = self.answers[-1]["body"]["id"]
        self.see_through()

    def _remote(self) -> None:
        self.play_elsewhere(self.case.answer)

    def _outside(self) -> None:
        misfortunes.BEFALL[self.case.point](self)

    # --- what leads up to the crash -------------------------------------------------

    def _ask_here(self, **options: Any) -> tuple[Child, Path]:
        answer = self.folder / f"answer{len(self.children)}.json"
        work = partial(roles.ask_here, str(self.folder), answer)
        return self.fork("asks for a call", work, **options), answer

    def ask(self, thread_id: str | None = None, **setting: str) -> None:
        asked = {
            "mode": self.case.mode,
            "case": str(self.folder),
            "amount": 10,
            "flaky": self.case.flaky,
        }
        body = {"agent": "crashing", "input": asked, "thread_id": thread_id}
        answer = self._request("asks", "turns/", body, **setting)
        if answer["status"] != 202:
            raise Failed(f"the start was answered with {answer}")
        self.turn_id = answer["body"]["id"]

    def ask_and_run(self) -> None:
        # Nobody else listens yet, and what nobody fetches would greet the next worker.
        self.ask(dispatcher="worker")
        self.finish(self.fork("first run", partial(roles.run_here, self.turn_id)))

    def die_in_the_call(self) -> None:
        self.ask_and_run()
        self.approve(dispatcher="worker")
        run = partial(roles.run_here, self.turn_id)
        child = self.fork("first worker", run, point=self.case.died_at, kind="kill")
        if not child.hit(signal.SIGKILL, seconds=STEP_SECONDS):
            raise Failed(f"the first worker did not pass {self.case.died_at}")

    def _doubt(self) -> None:
        self.die_in_the_call()
        worker = self.worker()
        self.until(lambda: self._in_doubt() is not None, "nothing was put in doubt")
        self.doubted = True
        worker.kill()

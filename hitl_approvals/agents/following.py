"""One run's look after the workflow of its turn."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from hitl_approvals import canonical
from hitl_approvals.agents.base import Completed
from hitl_approvals.agents.framework import FrameworkTurn, in_worker
from hitl_approvals.agents.links import (
    Absent,
    Asking,
    Broken,
    CannotCancel,
    Ended,
    Engine,
    EngineAway,
    Link,
    Seen,
    Working,
)
from hitl_approvals.agents.rounds import take_round
from hitl_approvals.agents.snapshots import pack
from hitl_approvals.conf import hitl_settings
from hitl_approvals.engines.rounds import AnswerRefused
from hitl_approvals.enums import DecisionType, InterruptStatus
from hitl_approvals.exceptions import (
    LeaseLost,
    PayloadRejected,
    RunDeferred,
    RunDiverged,
    TurnFailed,
)
from hitl_approvals.models import AgentTurn
from hitl_approvals.services import journal, partings
from hitl_approvals.services.run import Run

FIRST_LOOK, LONGEST_LOOK = 0.05, 1.0
"""Seconds between two looks at a workflow that is at work."""
LONGEST_WAIT = 60.0
"""Most seconds between two runs of a turn whose workflow or engine keeps it waiting."""


class Following:
    """Goes on from what the engine shows, whatever earlier runs came to."""

    def __init__(self, engine: Engine, turn: FrameworkTurn, run: Run) -> None:
        self.engine = engine
        self.turn = turn
        self.run = run
        self.workflow = workflow_id(run.turn)
        self.answered = 0
        """The last round whose answer this run has delivered."""
        self.waited: dict[str, Any] = {}
        """How long earlier runs had to wait, until this one found the workflow gone on."""

    def state(self, number: int, *, started: bool = True) -> dict[str, Any]:
        """Return what is kept of the turn: which workflow, and how far it was seen."""
        return pack(
            self.engine.maker,
            {"workflow": self.workflow, "round": number, "started": started},
            calls=list(self.turn.waiting.values()),
            replies=0,
        )

    async def follow(self) -> Completed | int:
        """Follow the workflow until it ends, or return the round that needs people.

        Raises:
            RunDeferred: It is at work, or its engine is away; look again later.
            RunDiverged: It is not there any more, it refused its answer, or it is over
                and people have decided for it in vain.
            TurnFailed: It ended without a result.
        """
        try:
            async with self.engine.link() as link:
                return await self._rounds(link, await self._first_look(link))
        except EngineAway as away:
            raise self._later("away", str(away)) from away
        except AnswerRefused as refused:
            raise RunDiverged(
                f"The workflow {self.workflow} refused the results of its calls: "
                f"{refused} What ran is on record."
            ) from refused

    async def _first_look(self, link: Link) -> Seen:
        """Return what the workflow is doing, once it is started."""
        seen = await link.look(self.workflow)
        if not isinstance(seen, Absent):
            return seen
        if (self.run.turn.state or {}).get("data", {}).get("started"):
            raise RunDiverged(
                f"{self.engine.name} at {self.engine.where} does not know the workflow "
                f"{self.workflow} any more. Bring it back and retry the turn, restart it "
                "(its gated calls ask again), or cancel it."
            )
        for before in workflows_of(self.run.turn)[1:]:
            # It may still wait for calls that nobody decides any more, or a worker that
            # was about to start it may be late.
            await link.forestall(before)
            with suppress(CannotCancel):
                await link.cancel(before)
        self.run.check_lease()
        await link.start(self.workflow, self.run.turn.input)
        # From here on a workflow that is gone is not one that was never started.
        try:
            await in_worker(self._keep, self.state(0))
        except LeaseLost:
            await in_worker(partings.note_again, self.run.turn.pk)
            raise
        return await link.look(self.workflow)

    async def _rounds(self, link: Link, seen: Seen) -> Completed | int:
        until, pause = time.monotonic() + self.engine.patience, FIRST_LOOK
        while True:
            self.run.check_lease()
            if not isinstance(seen, Absent | Working):
                await in_worker(self._stop_waiting)
            if isinstance(seen, Ended):
                return Completed(self._json(seen.output))
            if isinstance(seen, Broken):
                raise self._without_result(seen.why)
            if isinstance(seen, Asking) and seen.number > self.answered:
                results = await in_worker(take_round, self.turn, self.run, seen)
                if results is None:
                    return seen.number
                await link.deliver(self.workflow, self._answer(seen.number, results))
                self.answered = seen.number
                until, pause = time.monotonic() + self.engine.patience, FIRST_LOOK
            elif time.monotonic() + pause > until:
                why = seen.why if isinstance(seen, Working) else ""
                raise self._later("at work", why)
            else:
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_LOOK)
            seen = await link.look(self.workflow)

    def _without_result(self, why: str) -> RunDiverged | TurnFailed:
        """Return how a turn stops whose workflow is over without a result.

        People who decided for it in vain are told so, and their decisions are kept.
        """
        for row in self.run.interrupts.values():
            decided = row.status == InterruptStatus.DECIDED
            if decided and row.decision != DecisionType.EXPIRE:
                return RunDiverged(
                    f"{why.rstrip('.')}. Nobody waits there for what was decided here, so "
                    "it was not run. Restart the turn (its gated calls ask again), or "
                    "cancel it."
                )
        return TurnFailed(why)

    def _keep(self, state: dict[str, Any]) -> None:
        """Write the state, and take back what the operator was told of a wait."""
        waited = "waiting" in (self.run.turn.state or {}).get("data", {})
        cleared = {"last_error": ""} if waited else {}
        self.run.turn.state = state
        journal.write(self.run, state=state, **cleared)

    def _stop_waiting(self) -> None:
        """Note that the workflow was reached and has gone on."""
        state = self.run.turn.state
        if state is not None and "waiting" in state["data"]:
            data = dict(state["data"])
            self.waited = data.pop("waiting")
            self._keep({**state, "data": data})

    def _answer(self, number: int, results: dict[str, Any]) -> dict[str, Any]:
        # The same in every try: engines know it again by the key.
        return {
            "round": number,
            "key": f"{self.workflow}-{number}",
            "results": results,
        }

    def _json(self, output: Any) -> Any:
        try:
            canonical.dumps(
                output,
                max_bytes=hitl_settings.max_payload_bytes,
                max_depth=hitl_settings.max_depth,
            )
        except PayloadRejected as error:
            raise TurnFailed(
                f"The workflow {self.workflow} ended, and its result cannot be kept: "
                f"{error.detail}"
            ) from error
        return output

    def _later(self, what: str, why: str) -> RunDeferred:
        """Return the end of a run that can do nothing now; it uses up no attempt."""
        state = self.run.turn.state
        if state is None:
            state = self.state(0, started=what == "at work")
        # A workflow that can be seen may still not be answered, run after run.
        waiting = state["data"].get("waiting") or self.waited
        if (waiting.get("what"), waiting.get("answered")) != (what, self.answered):
            since = self.run.clock.now().isoformat(timespec="seconds")
            waiting = {
                "what": what,
                "answered": self.answered,
                "since": since,
                "looks": 0,
            }
        looks = waiting["looks"] + 1
        data = {**state["data"], "waiting": {**waiting, "looks": looks}}
        seconds = min(2.0 ** min(looks - 1, 16), LONGEST_WAIT)
        # Those that an engine kept waiting do not all come back at once.
        seconds *= random.uniform(0.8, 1)  # noqa: S311  no secret
        return RunDeferred(
            self._told(what, why, waiting["since"], looks),
            wait=timedelta(seconds=seconds),
            state={**state, "data": data},
        )

    def _told(self, what: str, why: str, since: str, looks: int) -> str:
        place = f"{self.engine.name} at {self.engine.where}"
        when = f"since {datetime.fromisoformat(since):%Y-%m-%d %H:%M:%S} UTC"
        times = "1 time" if looks == 1 else f"{looks} times"
        if what == "away":
            return f"Waits for {place}, which does not answer {when}, {times}: {why}"
        text = (
            f"The workflow {self.workflow} is at work ({place}) {when}, {times} seen."
        )
        return f"{text} {why}".strip()


def workflow_id(turn: AgentTurn, *, before: int = 0) -> str:
    """Return the id of a turn's workflow; of an earlier restart's with `before`."""
    return f"hitl-{turn.pk}-{turn.restarts - before}"


def workflows_of(turn: AgentTurn) -> list[str]:
    """Return the ids of all workflows that a turn may have, the latest first."""
    return [workflow_id(turn, before=before) for before in range(turn.restarts + 1)]

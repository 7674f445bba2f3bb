"""Runs the turns of a LangGraph agent: start, pause, go on, whatever died in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from langgraph.errors import is_invalid_resume
from langgraph.types import Command

from hitl_approvals.agents.base import Completed
from hitl_approvals.agents.capabilities import Capabilities
from hitl_approvals.agents.framework import (
    FrameworkAgent,
    FrameworkTurn,
    Paused,
    in_worker,
)
from hitl_approvals.agents.langgraph import CAPABILITIES
from hitl_approvals.agents.langgraph.building import graph_of
from hitl_approvals.agents.langgraph.pauses import Pauses, is_ours, is_review
from hitl_approvals.agents.langgraph.saving import Saving, awaitable
from hitl_approvals.agents.langgraph.session import Session
from hitl_approvals.agents.langgraph.shapes import (
    graph_input,
    kept_for_output,
    output_of,
)
from hitl_approvals.agents.langgraph.threads import Place, Thread, checkpoint_id
from hitl_approvals.agents.snapshots import REMEDY, Maker, Snapshot
from hitl_approvals.exceptions import RunDiverged
from hitl_approvals.gate.framework import Asked
from hitl_approvals.registry import current_gate


class LangGraphAgent(FrameworkAgent):
    """Runs a graph that LangGraph checkpoints; the gate keeps what its tools did."""

    maker: ClassVar[Maker] = Maker("langgraph", "langgraph", adapter=1)
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    async def begin(self, turn: FrameworkTurn, given: Any) -> Completed | Paused:
        """Perform a turn from its beginning, or from where a start of it died."""
        return await _Play(self, turn, None).perform(given)

    async def go_on(
        self,
        turn: FrameworkTurn,
        snapshot: Snapshot,
        messages: Mapping[tuple[str, str, int], dict[str, Any]],
    ) -> Completed | Paused:
        """Go on from the last checkpoint; what was decided has run by now."""
        return await _Play(self, turn, snapshot).perform(None)


class _Play:
    """One run of a turn."""

    def __init__(
        self, agent: LangGraphAgent, turn: FrameworkTurn, snapshot: Snapshot | None
    ) -> None:
        definition = agent.definition
        self._turn = turn
        self._snapshot = snapshot
        self._graph = graph_of(definition)
        self._thread = Thread(definition.name, turn)
        self._pauses = Pauses(turn, definition.tools)

    async def perform(self, given: Any) -> Completed | Paused:
        self._saving = Saving(await awaitable(self._graph.checkpointer), self._turn)
        self._graph = self._graph.copy({"checkpointer": self._saving.saver})
        with self._saving.keeping():
            place = await self._thread.place(self._graph, self._saving.saver)
        if place.state is not None:
            self._saving.head = checkpoint_id(place.state)
        session = Session(self._turn, self._known())
        token = current_gate.set(session)
        try:
            return await self._perform(session, place, given)
        finally:
            await session.drained(over=True)
            current_gate.reset(token)

    async def _perform(
        self, session: Session, place: Place, given: Any
    ) -> Completed | Paused:
        config = place.config
        if place.state is None:
            if self._snapshot is not None:
                raise RunDiverged(
                    f"LangGraph has nothing left of thread `{self._thread.id}`: its "
                    f"checkpoints were removed while the turn was paused. {REMEDY}"
                )
            what = graph_input(self._graph, given)
        else:
            if self._is_over(place.state):
                values = kept_for_output(self._graph, place.state.values)
                return Completed(output_of(values))
            answers = await self._answers(
                session, _unanswered(place.state), place.state.values
            )
            # What was not even asked is asked when the graph comes to it again.
            self._turn.wanted.clear()
            self._turn.waiting.clear()
            what = Command(resume=answers) if answers else None
        before: set[str] = set()
        while True:
            session.round += 1
            output = await self._run(session, what, config)
            config = self._thread.config
            waiting = {one.id: one for one in output.interrupts}
            if not waiting:
                return Completed(output_of(output.value))
            answers = await self._answers(session, waiting.values(), output.value)
            if self._turn.wanted:
                return Paused(self._data())
            if waiting.keys() == before:
                raise RunDiverged(
                    "The graph pauses again and again where all is decided: its nodes "
                    "ask for another call, or in another order, each time they run."
                )
            before = set(waiting)
            what = Command(resume=answers) if answers else None

    async def _run(self, session: Session, what: Any, config: dict[str, Any]) -> Any:
        options: dict[str, Any] = {"durability": "sync", "version": "v2"}
        if self._graph.context_schema is not None:
            options["context"] = self._turn.execute_options
        try:
            output = await self._graph.ainvoke(what, config, **options)
        except Exception as error:
            if not is_invalid_resume(error):
                raise
            raise RunDiverged(
                "The graph does not take the answer to its question: "
                f"{error}. A refusal arrives as "
                '{"type": "reject", "message": ...}, which its response_schema has to '
                f"allow. {REMEDY}"
            ) from error
        finally:
            await session.drained()
        if self._turn.stopped is not None:
            raise self._turn.stopped
        return output

    async def _answers(
        self, session: Session, interrupts: Iterable[Any], values: Any
    ) -> dict[str, Any]:
        waiting = [one for one in interrupts if not is_ours(one)]
        if not waiting:
            return {}
        states: Sequence[Any] = [values]
        if any(is_review(one) for one in waiting):
            states = [values, *await self._nested()]
            # What was reviewed is performed here.
            self._saving.forget()
        answers = await in_worker(self._pauses.answers, waiting, states)
        for asked in self._pauses.reviewed:
            session.know(asked)
        return answers

    async def _nested(self) -> list[Any]:
        """Return the values of all graphs of the thread that are under way."""
        found, left = (
            [],
            [await self._graph.aget_state(self._thread.config, subgraphs=True)],
        )
        while left:
            state = left.pop(0)
            found.append(state.values)
            left += [one.state for one in state.tasks if hasattr(one.state, "tasks")]
        return found

    def _is_over(self, state: Any) -> bool:
        """Tell whether the graph had ended, and only the turn did not learn of it."""
        if state.next:
            return False
        paused_at = (
            None if self._snapshot is None else self._snapshot.data["checkpoint"]
        )
        if checkpoint_id(state) == paused_at:
            raise RunDiverged(
                "What this turn was paused in is not among the nodes of its graph now. "
                f"{REMEDY}"
            )
        return True

    def _known(self) -> list[Asked]:
        if self._snapshot is None:
            return []
        earlier = [Asked(**one) for one in self._snapshot.data["reviewed"]]
        self._pauses.reviewed += earlier
        return [*self._snapshot.calls, *earlier]

    def _data(self) -> dict[str, Any]:
        reviewed = {
            (one.origin, one.id, one.ordinal): one for one in self._pauses.reviewed
        }
        return {
            "thread": self._thread.id,
            "checkpoint": self._saving.head,
            "reviewed": [asdict(one) for one in reviewed.values()],
        }


def _unanswered(state: Any) -> list[Any]:
    """Return what a graph waits for, without what it may have been told already.

    A node that failed after its answer keeps the answer, and LangGraph reports it as
    waiting all the same: told again, it would take that for the answer to its next
    question. It is run again first, and asks again if it has to.
    """
    return [
        interrupt
        for task in state.tasks
        if task.error is None
        for interrupt in task.interrupts
    ]

"""A durable engine of a few lines: it keeps its workflows in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hitl_approvals.agents.forwarder import CAPABILITIES, ForwarderAgent
from hitl_approvals.agents.links import (
    Absent,
    Broken,
    Ended,
    Engine,
    EngineAway,
    Link,
    Seen,
    Working,
    asking,
)
from hitl_approvals.agents.snapshots import Maker
from hitl_approvals.engines import rounds
from hitl_approvals.registry import AgentDefinition
from tests.engines.forwarding import Harness


@dataclass
class Workflow:
    """One workflow that plays a script."""

    script: list[Any]
    told: list[Any] = field(default_factory=list)
    pending: dict[str, Any] | None = None
    rounds: int = 0
    broken: str = ""

    @property
    def is_over(self) -> bool:
        return bool(self.broken) or len(self.told) == len(self.script)


class MemoryEngine(Harness):
    """The engine, its only worker, and the harness of both."""

    name = "Memory"

    def __init__(self) -> None:
        self.model_calls: list[Any] = []
        self.workflows: dict[str, Workflow] = {}
        self.let_in: dict[str, int] = {}
        self.is_up = self.works = True

    def stop_server(self) -> None:
        self.is_up = False

    def start_server(self) -> None:
        self.is_up = True

    def stop_worker(self) -> None:
        self.works = False

    def start_worker(self) -> None:
        self.works = True
        for one in self.workflows.values():
            self.advance(one)

    def deliver(self, workflow: str, answer: Any) -> None:
        one = self.workflows[workflow]
        try:
            rounds.check(one.pending, one.rounds, answer)
        except rounds.AlreadyAnswered:
            return
        results = answer["results"]
        asked = one.script[len(one.told)]
        self.let_in[workflow] = self.let_in.get(workflow, 0) + 1
        one.pending = None
        if isinstance(asked, list):
            one.told.append([results[call["id"]] for call in asked])
        else:
            one.told.append(results[rounds.ANSWER])
        self.advance(one)

    def deliveries(self, workflow: str) -> int:
        return self.let_in.get(workflow, 0)

    def cancel(self, workflow: str) -> None:
        if workflow in self.workflows:
            self.workflows[workflow].broken = f"{workflow} was cancelled"

    def is_over(self, workflow: str) -> bool:
        return self.workflows[workflow].is_over

    def start(self, workflow: str, script: Any) -> None:
        if workflow not in self.workflows:
            self.workflows[workflow] = Workflow(script)
            self.advance(self.workflows[workflow])

    def advance(self, one: Workflow) -> None:
        """Go on to the next round, or to the end."""
        if not self.works or one.is_over or one.pending is not None:
            return
        asked = one.script[len(one.told)]
        self.model_calls.append(asked)
        if isinstance(asked, list):
            shown = rounds.calls_of(asked, reason="the script says so")
        elif "ask" in asked:
            shown = rounds.question_of(asked["ask"], asked["schema"])
        else:
            one.broken = asked["fail"]
            return
        one.rounds += 1
        one.pending = {"round": one.rounds, **shown}


class MemoryLink(Link):
    """A connection that is cut when the engine is down."""

    def __init__(self, engine: MemoryEngine) -> None:
        self.engine = engine

    def reach(self) -> None:
        if not self.engine.is_up:
            raise EngineAway("it is switched off")

    async def look(self, workflow: str) -> Seen:
        self.reach()
        one = self.engine.workflows.get(workflow)
        if one is None:
            return Absent()
        if one.broken:
            return Broken(one.broken)
        if one.is_over:
            return Ended(one.told)
        return asking(one.pending) or Working()

    async def start(self, workflow: str, given: Any) -> None:
        self.reach()
        self.engine.start(workflow, given)

    async def deliver(self, workflow: str, answer: Mapping[str, Any]) -> None:
        self.reach()
        self.engine.deliver(workflow, answer)

    async def cancel(self, workflow: str) -> None:
        self.reach()
        self.engine.cancel(workflow)


class Address(Engine):
    """Where the engine is."""

    name = "Memory"
    maker = Maker(framework="memory", distribution="django", adapter=1)
    where = "127.0.0.1:1"
    patience = 0.1

    def __init__(self, engine: MemoryEngine) -> None:
        self.engine = engine

    def link(self) -> AbstractAsyncContextManager[Link]:
        return self._link()

    @asynccontextmanager
    async def _link(self) -> AsyncIterator[Link]:
        link = MemoryLink(self.engine)
        link.reach()
        yield link


__all__ = ["CAPABILITIES", "make"]


def make(definition: AgentDefinition) -> ForwarderAgent:
    return ForwarderAgent(definition, Address(definition.target))

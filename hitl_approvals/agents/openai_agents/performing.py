"""One run of an agent: which calls its model made, and the turn that they are gated by.

The SDK calls tools and models when it pleases, on tasks of its own. They find the run that
they belong to here, by a context variable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from typing import Any

from agents import ModelResponse, ToolApprovalItem

from hitl_approvals.agents.framework import FrameworkTurn, in_worker
from hitl_approvals.agents.openai_agents.replies import (
    calls_in,
    conversation,
    dumped,
    loaded,
    outputs_in,
)
from hitl_approvals.agents.snapshots import REMEDY
from hitl_approvals.exceptions import NotInTurn, RunDiverged
from hitl_approvals.gate.framework import Asked

_current: ContextVar[Performance | None] = ContextVar("hitl_performance", default=None)


Look = Callable[[Iterable[Any], Iterable[Any]], None]
"""Looks at the tools and the handoffs that a model is about to be told of."""


class Performance:
    """What the calls of one run are known by."""

    def __init__(self, turn: FrameworkTurn, look: Look) -> None:
        self.turn = turn
        self._look = look
        self.asking = False
        """A model is being asked, and has not replied."""
        self._asked: dict[str, Asked] = {}
        self._used: set[str] = set()
        self._messages: dict[str, list[dict[str, Any]]] = {}
        self._let_through: dict[str, str] = {}
        """Names of the calls, by id, that were let through and have run, and whose tools
        must be entered before the model is told anything about them."""

    def remember(self, items: Any) -> None:
        """Take the ids of calls that a conversation brings along as used."""
        self._used.update(str(one.get("call_id")) for one in calls_in(items))

    def kept(self, waiting: list[ToolApprovalItem]) -> dict[str, Any]:
        """Return as JSON what a later run has to know of the calls."""
        return {
            "used": sorted(self._used),
            "waiting": {
                str(item.call_id): {
                    "agent": item.agent.name,
                    "asked": asdict(self._asked[str(item.call_id)]),
                }
                for item in waiting
            },
        }

    def recall(self, kept: Mapping[str, Any]) -> None:
        """Know again what an earlier run kept."""
        self._used.update(kept["used"])
        for call_id, one in kept["waiting"].items():
            self._asked[call_id] = Asked(**one["asked"])

    async def reply(
        self, ask: Callable[[], Awaitable[ModelResponse]], given: Any
    ) -> ModelResponse:
        """Return the model's next reply: recorded once, replayed after a crash."""

        async def plainly() -> dict[str, Any]:
            self.asking = True
            reply = dumped(await ask())
            self.asking = False
            return reply

        def next_one() -> tuple[dict[str, Any], int]:
            reply = self.turn.reply(plainly, result_type=None)
            return reply, self.turn.replies

        self._refuse_made_up(given)
        reply, number = await in_worker(next_one)
        origin = f"reply-{number}"
        self._messages[origin] = conversation(given, reply)
        self._note(reply, origin)
        return loaded(reply)

    def _note(self, reply: Mapping[str, Any], origin: str) -> None:
        """Know the calls of a reply, each by an id that this turn has not seen yet.

        The SDK takes an id for one call in the whole run; models use them again.
        """
        seen: Counter[str] = Counter()
        for item in calls_in(reply["output"]):
            given = str(item.get("call_id") or "")
            seen[given] += 1
            asked = Asked(
                id=given,
                name=str(item.get("name")),
                args=item.get("arguments") or "{}",
                origin=origin,
                ordinal=seen[given],
            )
            item["call_id"] = self._own_id(asked)
            self._used.add(item["call_id"])
            self._asked[item["call_id"]] = asked

    def _own_id(self, asked: Asked) -> str:
        own = asked.id or f"call-{asked.origin}-{asked.ordinal}"
        while own in self._used:
            own = f"{own}-{asked.origin}-{asked.ordinal}"
        return own

    def asked_by(self, item: ToolApprovalItem) -> Asked | None:
        """Return the call that the SDK waits for, if it came from a recorded reply."""
        return self._asked.get(str(item.call_id))

    def look_at(self, tools: Iterable[Any], handoffs: Iterable[Any]) -> None:
        """Refuse tools and handoffs that nobody has looked at.

        Raises:
            RunDiverged: There is one; the text names it.
        """
        try:
            self._look(tools, handoffs)
        except RunDiverged as new:
            self.turn.stop(new)

    def let_through(self, item: ToolApprovalItem) -> None:
        """Note that the SDK is to enter the tool of a decided call."""
        self._let_through[str(item.call_id)] = str(item.name)

    async def has_run(self, call_id: str) -> bool:
        """Tell whether a call was decided, or begun before a crash, and is on record."""
        asked = self._asked.get(call_id)
        if asked is None:
            return False
        return call_id in self._let_through or await in_worker(
            self.turn.is_on_record, asked
        )

    def refused_by_guardrail(self, call_id: str) -> None:
        """Let a call rest that a guardrail of the site refused: nobody has to decide it."""
        asked = self._asked.get(call_id)
        for key in [key for key, one in self.turn.waiting.items() if one == asked]:
            del self.turn.waiting[key], self.turn.wanted[key]

    def require_all_entered(self) -> None:
        """Refuse to go on while the SDK has passed over a decided call.

        Raises:
            RunDiverged: The model was told something else than what happened.
        """
        for name in self._let_through.values():
            self.turn.stop(
                RunDiverged(
                    f"`{name}` was decided, and the SDK passed over it: the agent has no "
                    "such tool now, or something between the model and its tools skipped "
                    f"it. {REMEDY}"
                )
            )

    def _refuse_made_up(self, given: Any) -> None:
        """Refuse to tell the model of a decided call what its tool did not say."""
        if self._let_through and isinstance(given, list):
            answered = {str(one.get("call_id")) for one in outputs_in(given)}
            if not answered.isdisjoint(self._let_through):
                self.require_all_entered()

    async def offer(self, call_id: str, name: str) -> bool:
        """Tell whether a person has to decide a call before it may run."""
        asked = self._find(call_id, name)
        messages = self._messages.get(asked.origin)
        return await in_worker(self.turn.offer, asked, messages=messages)

    async def perform(self, call_id: str, name: str) -> str:
        """Run a call that is free or decided, and return what the model is told."""
        asked = self._find(call_id, name)
        self._let_through.pop(call_id, None)
        messages = self._messages.get(asked.origin)
        (message,) = await in_worker(self.turn.perform, asked, messages=messages)
        return str(message["content"])

    def _find(self, call_id: str, name: str) -> Asked:
        asked = self._asked.get(call_id)
        if asked is None or asked.name != name:
            self.turn.stop(
                RunDiverged(
                    f"`{name}` was to run for a call that came from no reply on record; "
                    "nothing ran. An agent used as a tool must not bring a run_config "
                    "with a model of its own."
                )
            )
        return asked


def performance() -> Performance | None:
    """Return the run that this code belongs to."""
    return _current.get()


def own_performance(name: str) -> Performance:
    """Return the run that a tool was called in.

    Raises:
        NotInTurn: The agent was run by something else than a turn.
    """
    found = _current.get()
    if found is None:
        raise NotInTurn(
            f"`{name}` belongs to turns, and none is running here. Start one with "
            "start_turn(...) in place of the SDK's own Runner."
        )
    return found


@contextmanager
def performing(run: Performance) -> Iterator[None]:
    """Let the models and tools of the SDK find this run."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)

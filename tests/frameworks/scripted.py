"""A kind of agent from outside of the package: a loop that keeps its conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from hitl_approvals.agents.base import Completed
from hitl_approvals.agents.capabilities import Capabilities
from hitl_approvals.agents.framework import (
    FrameworkAgent,
    FrameworkTurn,
    Paused,
    in_worker,
)
from hitl_approvals.agents.snapshots import Maker, Snapshot
from hitl_approvals.gate.framework import Asked
from hitl_approvals.registry import AgentDefinition

CAPABILITIES = Capabilities(
    partial_resume=False,
    native_edit=False,
    reject_text=True,
    questions=True,
    replays_replies=True,
    durability="package",
    state_format="json",
)


class ScriptedAgent(FrameworkAgent):
    """Asks what it was registered with for each reply to the conversation."""

    maker = Maker(framework="scripted", distribution="django", adapter=1)
    capabilities = CAPABILITIES

    async def begin(self, turn: FrameworkTurn, given: Any) -> Completed | Paused:
        return await self._loop(turn, [{"role": "user", "content": given}])

    async def go_on(
        self,
        turn: FrameworkTurn,
        snapshot: Snapshot,
        messages: Mapping[tuple[str, str, int], dict[str, Any]],
    ) -> Completed | Paused:
        return await self._loop(turn, snapshot.data["messages"])

    async def _loop(
        self, turn: FrameworkTurn, messages: list[dict[str, Any]]
    ) -> Completed | Paused:
        while True:
            if messages[-1]["role"] != "assistant":
                reply = await self._reply(turn, messages)
                messages.append({"role": "assistant", **reply})
            reply = messages[-1]
            if "question" in reply:
                return await self._ask(turn, reply, messages)
            if not reply["tool_calls"]:
                return Completed(reply["text"])
            try:
                told = await self._call(turn, reply["tool_calls"], messages)
            except Exception:
                if not reply.get("stubborn"):
                    raise
                return Completed("did it anyway")
            if told is None:
                return Paused({"messages": messages})
            messages += told

    async def _reply(self, turn: FrameworkTurn, messages: list[Any]) -> Any:
        return await in_worker(
            turn.reply, self.definition.target, messages, result_type=None
        )

    def _origin(self, messages: list[dict[str, Any]]) -> str:
        return f"reply {sum(one['role'] == 'assistant' for one in messages)}"

    async def _call(
        self, turn: FrameworkTurn, calls: list[Any], messages: list[dict[str, Any]]
    ) -> list[dict[str, Any]] | None:
        """Return a message for each call; None if one of them waits for a person."""
        origin = self._origin(messages)
        seen: Counter[str] = Counter()
        asked = []
        for one in calls:
            seen[one["id"]] += 1
            asked.append(
                Asked(
                    id=one["id"],
                    name=one["name"],
                    args=one["args"],
                    origin=origin,
                    ordinal=seen[one["id"]],
                )
            )
        if messages[-1].get("stubborn"):
            return await in_worker(turn.perform, *asked)
        waits = [await in_worker(turn.offer, one, messages=messages) for one in asked]
        if not any(waits):
            return await self._perform(turn, asked, messages)
        free = [one for one, wait in zip(asked, waits, strict=True) if not wait]
        await in_worker(turn.perform, *free, messages=messages)
        return None

    async def _perform(
        self, turn: FrameworkTurn, asked: list[Asked], messages: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        return await in_worker(turn.perform, *asked, messages=messages)

    async def _ask(
        self, turn: FrameworkTurn, reply: Any, messages: list[dict[str, Any]]
    ) -> Completed | Paused:
        wait = await in_worker(
            turn.offer_question, "which", reply["question"], reply["schema"]
        )
        if wait:
            return Paused({"messages": messages})
        return Completed(await in_worker(turn.answer_to, "which"))


def make(definition: AgentDefinition) -> ScriptedAgent:
    return ScriptedAgent(definition)

"""A framework of a few lines: it asks its script, runs tools, and pauses with a state."""

from __future__ import annotations

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
    questions=False,
    replays_replies=True,
    durability="package",
    state_format="json",
)


class ToyAgent(FrameworkAgent):
    """Plays `input`: a list of replies, each a list of calls."""

    maker = Maker(framework="toy", distribution="django", adapter=1)
    capabilities = CAPABILITIES

    async def begin(self, turn: FrameworkTurn, given: Any) -> Completed | Paused:
        return await self._play(turn, given, [], {})

    async def go_on(
        self,
        turn: FrameworkTurn,
        snapshot: Snapshot,
        messages: Mapping[tuple[str, str, int], dict[str, Any]],
    ) -> Completed | Paused:
        script, told = snapshot.data["script"], snapshot.data["told"]
        return await self._play(turn, script, told, messages)

    async def _play(
        self,
        turn: FrameworkTurn,
        script: list[Any],
        told: list[Any],
        messages: Mapping[tuple[str, str, int], dict[str, Any]],
    ) -> Completed | Paused:
        for n in range(len(told), len(script)):
            origin = f"reply-{n}"
            if n < turn.replies:
                reply = script[n]
            else:
                reply = await in_worker(
                    turn.reply, self.ask, script[n], result_type=None
                )
            asked = [
                Asked(id=one["id"], name=one["name"], args=one["args"], origin=origin)
                for one in reply
            ]
            waits = [await in_worker(turn.offer, one) for one in asked]
            if any(waits):
                for one, wait in zip(asked, waits, strict=True):
                    if not wait:
                        await in_worker(turn.perform, one)
                return Paused({"script": script, "told": told})
            told = [*told, await in_worker(turn.perform, *asked)]
        return Completed([[one["content"] for one in reply] for reply in told])

    async def ask(self, reply: list[Any]) -> list[Any]:
        """Stand for the model; counts how often it is really asked."""
        asked.append(reply)
        return reply


asked: list[Any] = []


def make(definition: AgentDefinition) -> ToyAgent:
    return ToyAgent(definition)

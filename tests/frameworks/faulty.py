"""Kinds of agent that break one rule each, for the contract to find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hitl_approvals import results
from hitl_approvals.agents.base import Completed, Suspended
from hitl_approvals.agents.framework import FrameworkTurn
from hitl_approvals.agents.snapshots import installed
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import AgentDefinition, registry
from hitl_approvals.services.run import Run
from tests.frameworks.scripted import CAPABILITIES, ScriptedAgent

__all__ = ["CAPABILITIES", "make"]


def ran(call: Any) -> dict[str, Any]:
    """Run a call beside the gate."""
    done = registry.tools[call["name"]].unguarded(**call["args"])
    return results.message(call["id"], call["name"], results.readable(done), results.OK)


class NoGate(ScriptedAgent):
    """Runs the tools itself."""

    async def _call(self, turn: FrameworkTurn, calls: Any, messages: Any) -> Any:
        return [ran(one) for one in calls]


class Repeating(ScriptedAgent):
    """Runs what the gate ran once more, as a framework that enters its nodes again."""

    async def _call(self, turn: FrameworkTurn, calls: Any, messages: Any) -> Any:
        told = await super()._call(turn, calls, messages)
        return told and [ran(one) for one in calls]


class OwnWords(ScriptedAgent):
    """Keeps from the model why it was refused."""

    async def _call(self, turn: FrameworkTurn, calls: Any, messages: Any) -> Any:
        told = await super()._call(turn, calls, messages)
        return told and [{**one, "content": "No."} for one in told]


class OneOrigin(ScriptedAgent):
    """Knows calls by the model's id alone."""

    def _origin(self, messages: Any) -> str:
        return "reply"


class AskingAgain(ScriptedAgent):
    """Records no reply."""

    async def _reply(self, turn: FrameworkTurn, messages: Any) -> Any:
        return self.definition.target(messages)


class ReadingAnything(ScriptedAgent):
    """Goes on from whatever state there is."""

    def resume(
        self, run: Run, state: Any, decisions: Sequence[PendingInterrupt]
    ) -> Completed | Suspended:
        now = {"framework_version": installed(self.maker.distribution)}
        return super().resume(run, {**state, **now}, decisions)


def make(definition: AgentDefinition) -> ScriptedAgent:
    kind: type[ScriptedAgent] = globals()[definition.target.fault]
    return kind(definition)

"""Kinds of agent that break one rule each, for the contract to find."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from hitl_approvals import results
from hitl_approvals.agents.base import Completed, Suspended
from hitl_approvals.agents.framework import FrameworkTurn, Paused, in_worker
from hitl_approvals.agents.snapshots import installed
from hitl_approvals.enums import DecisionType
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


class TooEarly(ScriptedAgent):
    """Runs a tool before it asks whether it may."""

    async def _call(self, turn: FrameworkTurn, calls: Any, messages: Any) -> Any:
        early = [ran(one) for one in calls]
        told = await super()._call(turn, calls, messages)
        return told and early


class IgnoringEdits(ScriptedAgent):
    """Runs what the model asked for, whatever a person made of it."""

    async def _perform(self, turn: FrameworkTurn, asked: Any, messages: Any) -> Any:
        told = []
        for one in asked:
            row = await in_worker(turn.row_of, one)
            if row is not None and row.decision == DecisionType.EDIT:
                told.append(ran({"id": one.id, "name": one.name, "args": one.args}))
            else:
                told += await super()._perform(turn, [one], messages)
        return told


class RunningRefused(ScriptedAgent):
    """Tells the model that a call was refused, and runs it."""

    async def _perform(self, turn: FrameworkTurn, asked: Any, messages: Any) -> Any:
        told = await super()._perform(turn, asked, messages)
        for call, message in zip(asked, told, strict=True):
            if message["status"] not in (results.OK, results.ERROR):
                ran({"id": call.id, "name": call.name, "args": call.args})
        return told


class OneAnswer(ScriptedAgent):
    """Loses all answers but the first one."""

    async def _perform(self, turn: FrameworkTurn, asked: Any, messages: Any) -> Any:
        return (await super()._perform(turn, asked, messages))[:1]


class SwappedAnswers(ScriptedAgent):
    """Gives each call the answer of another one."""

    async def _perform(self, turn: FrameworkTurn, asked: Any, messages: Any) -> Any:
        told = await super()._perform(turn, asked, messages)
        texts = [one["content"] for one in told]
        return [
            {**one, "content": text}
            for one, text in zip(told, texts[1:] + texts[:1], strict=True)
        ]


class KeepingInMemory(ScriptedAgent):
    """Keeps its conversation where no other process finds it."""

    kept: ClassVar[dict[str, Any]] = {}

    async def begin(self, turn: FrameworkTurn, given: Any) -> Any:
        return self._kept(turn, await super().begin(turn, given))

    async def go_on(self, turn: FrameworkTurn, snapshot: Any, messages: Any) -> Any:
        here = replace(snapshot, data=self.kept[snapshot.data["at"]])
        return self._kept(turn, await super().go_on(turn, here, messages))

    def _kept(self, turn: FrameworkTurn, outcome: Any) -> Any:
        if not isinstance(outcome, Paused):
            return outcome
        self.kept[str(turn.id)] = outcome.data
        return Paused({"at": str(turn.id)})


class Rounding(ScriptedAgent):
    """Hands arguments over by way of a language whose numbers are all floats."""

    async def _reply(self, turn: FrameworkTurn, messages: Any) -> Any:
        text = json.dumps(await super()._reply(turn, messages))
        return json.loads(text, parse_int=lambda digits: int(float(digits)))


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

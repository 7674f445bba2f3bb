"""Workflows that the tests run in Temporal's own sandbox. Imports no Django."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError

from hitl_approvals.engines.temporal import Approvals

QUEUE = "hitl-tests"
SOON = timedelta(seconds=30)

model_calls: list[Any] = []
"""Filled by the activity, which runs outside of the sandbox."""


@activity.defn(name="ask_model")
async def ask_model(entry: Any) -> Any:
    """Stand for the model: what it replies is recorded by the engine."""
    model_calls.append(entry)
    return entry


@workflow.defn(name="Scripted")
class Scripted:
    """Plays a script: lists of calls, questions, and failures."""

    def __init__(self) -> None:
        self.approvals = Approvals()

    @workflow.run
    async def run(self, script: list[Any]) -> list[Any]:
        told = []
        for entry in script:
            reply = await workflow.execute_activity(
                ask_model, entry, start_to_close_timeout=SOON
            )
            told.append(await self.play(reply))
        return told

    async def play(self, reply: Any) -> Any:
        if isinstance(reply, list):
            results = await self.approvals.call_tools(
                reply, reason="the script says so"
            )
            return [results[one["id"]] for one in reply]
        if "ask" in reply:
            return await self.approvals.ask(
                reply["ask"], response_schema=reply["schema"]
            )
        raise ApplicationError(reply["fail"], non_retryable=True)


@workflow.defn(name="Continuing")
class Continuing:
    """Plays one round a run, and continues as new with the rest of its script."""

    @workflow.init
    def __init__(self, script: list[Any], told: Any = None, after: int = 0) -> None:
        self.approvals = Approvals(after=after)

    @workflow.run
    async def run(self, script: list[Any], told: Any = None, after: int = 0) -> Any:
        told = told or []
        if script:
            results = await self.approvals.call_tools(script[0])
            told.append([results[one["id"]] for one in script[0]])
            workflow.continue_as_new(args=[script[1:], told, self.approvals.rounds])
        return told


@workflow.defn(name="Together")
class Together:
    """Asks for the rounds of its script at the same time."""

    def __init__(self) -> None:
        self.approvals = Approvals()

    @workflow.run
    async def run(self, script: list[Any]) -> Any:
        rounds = [self.approvals.call_tools(one) for one in script]
        results = await asyncio.gather(*rounds)
        return [
            [given[one["id"]] for one in asked]
            for asked, given in zip(script, results, strict=True)
        ]


@workflow.defn(name="Confused")
class Confused:
    """Asks for calls that nobody could tell apart."""

    def __init__(self) -> None:
        self.approvals = Approvals()

    @workflow.run
    async def run(self, script: list[Any]) -> Any:
        return await self.approvals.call_tools([*script[0], *script[0]])


@activity.defn(name="play_script")
async def play_script(script: list[Any], number: int, told: list[Any]) -> Any:
    """Play the contract's model."""
    from hitl_approvals.testing.agent_contract_world import Script

    return Script(script).play(number, [(one[0], one[1]) for one in told])


@workflow.defn(name="Contract")
class Contract:
    """A loop of model and tools, as the contract wants it."""

    def __init__(self) -> None:
        self.approvals = Approvals()

    @workflow.run
    async def run(self, prompt: str) -> Any:
        script = workflow.memo_value("script", default=None)
        if script is None:
            asked = workflow.memo_value("question")
            answer = await self.approvals.ask(
                asked["payload"], response_schema=asked["schema"]
            )
            return answer["value"]
        told: list[Any] = []
        number = 0
        while True:
            reply = await workflow.execute_activity(
                play_script, args=[script, number, told], start_to_close_timeout=SOON
            )
            number += 1
            if not reply["tool_calls"]:
                return reply["text"]
            results = await self.approvals.call_tools(
                reply["tool_calls"], reason=reply["text"]
            )
            told += [
                [one["id"], results[one["id"]]["message"]["content"]]
                for one in reply["tool_calls"]
            ]


WORKFLOWS = [Scripted, Continuing, Together, Confused, Contract]

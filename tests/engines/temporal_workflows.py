"""Workflows that the tests run in Temporal's own sandbox. Imports no Django."""

from __future__ import annotations

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

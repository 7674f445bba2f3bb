"""A Restate service that the tests start and kill: `restate_service.py <port> <log>`.

Imports no Django.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import hypercorn.asyncio
import restate
from restate import Workflow, WorkflowContext
from restate.exceptions import TerminalError

from hitl_approvals.engines.restate import Approvals, with_approvals
from tests.engines import contract_model

scripted = with_approvals(Workflow("Scripted"))
contract = with_approvals(Workflow("Contract"))


def note(entry: Any) -> None:
    with Path(sys.argv[2]).open("a") as log:
        log.write(json.dumps(entry) + "\n")


@scripted.main()
async def run(ctx: WorkflowContext, script: list[Any]) -> list[Any]:
    """Play a script: lists of calls, questions, and failures."""
    approvals = Approvals(ctx)
    told: list[Any] = []
    for number, entry in enumerate(script):
        await ctx.run_typed(f"model {number}", note, entry=entry)
        if isinstance(entry, list):
            results = await approvals.call_tools(entry, reason="the script says so")
            told.append([results[one["id"]] for one in entry])
        elif "ask" in entry:
            asked = await approvals.ask(entry["ask"], response_schema=entry["schema"])
            told.append(asked)
        else:
            raise TerminalError(entry["fail"], status_code=entry.get("status", 500))
    return told


@contract.main(name="run")
async def loop(ctx: WorkflowContext, prompt: str) -> Any:
    """Loop over model and tools, as the contract wants it."""
    approvals = Approvals(ctx)
    given = json.loads(ctx.request().headers["x-given"])
    if "question" in given:
        asked = given["question"]
        answer = await approvals.ask(asked["payload"], response_schema=asked["schema"])
        return answer["value"]
    told: list[Any] = []
    number = 0
    while True:
        reply = await ctx.run_typed(
            f"model {number}",
            contract_model.play,
            given=given,
            number=number,
            told=told,
        )
        number += 1
        if not reply["tool_calls"]:
            return reply["text"]
        results = await approvals.call_tools(reply["tool_calls"], reason=reply["text"])
        told += [
            [one["id"], results[one["id"]]["message"]["content"]]
            for one in reply["tool_calls"]
        ]


async def serve(port: str) -> None:
    config = hypercorn.Config()
    config.bind = [f"127.0.0.1:{port}"]
    app = restate.app([scripted, contract])
    await hypercorn.asyncio.serve(app, config)  # type: ignore[arg-type]


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))

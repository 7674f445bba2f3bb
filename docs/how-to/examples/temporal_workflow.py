"""The workflow and its worker. Knows no Django."""

from __future__ import annotations

# begin workflow
import asyncio
import sys
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

from hitl_approvals.engines.temporal import Approvals

QUEUE = "refunds"


@activity.defn
async def ask_model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Stand for a model: it asks for one refund, then repeats what it was told."""
    if messages[-1]["role"] == "tool":
        return {"role": "assistant", "content": messages[-1]["content"], "calls": []}
    call = {
        "id": "call_1",
        "name": "issue_refund",
        "args": {"order": "A1", "amount": 120},
    }
    return {"role": "assistant", "content": "I will refund.", "calls": [call]}


@workflow.defn
class Refund:
    def __init__(self) -> None:
        self.approvals = Approvals()

    @workflow.run
    async def run(self, prompt: str) -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        while True:
            reply = await workflow.execute_activity(
                ask_model, messages, start_to_close_timeout=timedelta(minutes=2)
            )
            messages.append(reply)
            if not reply["calls"]:
                return str(reply["content"])
            results = await self.approvals.call_tools(
                reply["calls"], messages=messages, reason=reply["content"]
            )
            messages += [results[call["id"]]["message"] for call in reply["calls"]]


async def work(address: str) -> None:
    client = await Client.connect(address)
    worker = Worker(
        client, task_queue=QUEUE, workflows=[Refund], activities=[ask_model]
    )
    await worker.run()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
# end workflow

"""The Restate service with its workflow. Knows no Django."""

from __future__ import annotations

# begin workflow
import asyncio
import sys
from typing import Any

import hypercorn.asyncio
import restate
from restate import Workflow, WorkflowContext

from hitl_approvals.engines.restate import Approvals, with_approvals

refund = with_approvals(Workflow("Refund"))


def ask_model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Stand for a model: it asks for one refund, then repeats what it was told."""
    if messages[-1]["role"] == "tool":
        return {"role": "assistant", "content": messages[-1]["content"], "calls": []}
    call = {
        "id": "call_1",
        "name": "issue_refund",
        "args": {"order": "A1", "amount": 120},
    }
    return {"role": "assistant", "content": "I will refund.", "calls": [call]}


@refund.main()
async def run(ctx: WorkflowContext, prompt: str) -> str:
    approvals = Approvals(ctx)
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    while True:
        reply = await ctx.run_typed("ask the model", ask_model, messages=messages)
        messages.append(reply)
        if not reply["calls"]:
            return str(reply["content"])
        results = await approvals.call_tools(
            reply["calls"], messages=messages, reason=reply["content"]
        )
        messages += [results[call["id"]]["message"] for call in reply["calls"]]


async def serve(port: str) -> None:
    config = hypercorn.Config()
    config.bind = [f"127.0.0.1:{port}"]
    await hypercorn.asyncio.serve(restate.app([refund]), config)  # type: ignore[arg-type]


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
# end workflow

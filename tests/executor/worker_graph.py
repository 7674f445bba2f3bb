"""A graph that tells which process ran each of its nodes."""

from __future__ import annotations

import os
from typing import Any

from hitl_approvals import DurableExecutor
from hitl_approvals.testing.checkpoint_graphs import note


def prepare(given: Any) -> Any:
    note(given, f"prepare:{os.getpid()}")
    return given


async def ask(given: Any, ctx: Any) -> Any:
    answer = await ctx.interrupt({"question": "Go on?"})
    return {**given, "answer": answer}


def finish(given: Any, ctx: Any) -> Any:
    ctx.once("finish", lambda: note(given, f"finish:{os.getpid()}"))
    return [given["answer"], sorted(ctx.state)]


executor = DurableExecutor(
    nodes=[("prepare", prepare), ("ask", ask), ("finish", finish)], name="worker-graph"
)

"""A graph with an effect before its question and one after it, counted in a file."""

from __future__ import annotations

from typing import Any

from hitl_approvals import DurableExecutor
from hitl_approvals.testing.checkpoint_graphs import note


def prepare(given: Any) -> Any:
    return given


def ask(given: Any, ctx: Any) -> Any:
    ctx.once("charge", lambda: note(given, "charge"))
    return {**given, "answer": ctx.interrupt("Go on?")}


def finish(given: Any, ctx: Any) -> Any:
    ctx.once("receipt", lambda: note(given, "receipt"))
    return ["charged", given["answer"]]


executor = DurableExecutor(
    nodes=[("prepare", prepare), ("ask", ask), ("finish", finish)], name="killed"
)

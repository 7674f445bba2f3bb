"""Nodes to test stores with; those of one graph count their doings in a file."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from hitl_approvals.executor import DurableExecutor
from hitl_approvals.graphs import NodeFunction
from hitl_approvals.stores.checkpoints import CheckpointStore

NAME = "checkpoint-store-contract"


def note(given: Any, what: str) -> None:
    """Have an effect that outlives the process: one line in the file."""
    with Path(given["effects"]).open("a", encoding="utf-8") as file:
        file.write(f"{what}\n")
        file.flush()
        os.fsync(file.fileno())


def noted(path: Path) -> list[str]:
    """Return what was done, in order."""
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def prepare(given: Any) -> Any:
    """Do something, before anybody is asked."""
    note(given, "prepare")
    return given


def ask(given: Any, ctx: Any) -> Any:
    """Have one effect, and ask two questions."""
    note(given, "ask")
    ctx.once("fee", lambda: note(given, "fee"))
    answers = [ctx.interrupt("first?"), ctx.interrupt("second?")]
    return {**given, "answers": answers}


def finish(given: Any) -> Any:
    """Die the first time, if that is wanted; else be done."""
    note(given, "finish")
    if given.get("die"):
        mark = Path(f"{given['effects']}.died")
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return given["answers"]


def counted(store: CheckpointStore) -> DurableExecutor:
    """Return the executor of this graph over a store."""
    nodes: list[tuple[str, NodeFunction]]
    nodes = [("prepare", prepare), ("ask", ask), ("finish", finish)]
    return DurableExecutor(nodes, store=store, name=NAME)


def ask_approval(given: Any, ctx: Any) -> Any:
    value = ctx.interrupt({"question": "Approve this transfer?"})
    return {"input": given, "approved": value}


def execute(data: Any) -> Any:
    return {**data, "done": True}


def ask_twice(given: Any, ctx: Any) -> Any:
    return [ctx.interrupt("first?"), ctx.interrupt("second?")]


def look_again(given: Any, ctx: Any) -> Any:
    return dict(ctx.state)

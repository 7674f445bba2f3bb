"""A graph that stops for a person, for the tests of the checkpointer. Imports LangGraph.

    python -m tests.engines.checkpoints_support WHAT THREAD FILE

with start, resume, die, go_on, before or after as WHAT runs one part of its life in a process of its own; `FILE` gets a line for each effect.
"""

from __future__ import annotations

import operator
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict, total=False):
    """One value that grows, one that is set once, and one that is plain."""

    log: Annotated[list[str], operator.add]
    order: dict[str, Any]
    done: bool


def build(saver: Any, *, effects: Path | None = None, die: bool = False) -> Any:
    """Compile the graph: plan, then ask and pay, then close."""

    def told(what: str) -> None:
        if effects is not None:
            with effects.open("a") as file:
                file.write(f"{what}\n")

    def plan(state: State) -> State:
        told("plan")
        return {"log": ["planned"], "order": {"id": "A1", "amount": 50}}

    def pay(state: State) -> State:
        if die:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = interrupt({"pay": state["order"]["amount"]})
        told("pay")
        return {"log": [f"paid: {answer}"]}

    def close(state: State) -> State:
        told("close")
        return {"log": ["closed"], "done": True}

    graph = StateGraph(State)
    for node in (plan, pay, close):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "pay")
    graph.add_edge("pay", "close")
    graph.add_edge("close", END)
    return graph.compile(checkpointer=saver)


def build_delta(saver: Any) -> Any:
    """Compile a graph whose log is stored as what was added, with a snapshot at times."""
    from langgraph.channels.delta import DeltaChannel

    def added(log: list[str], more: Any) -> list[str]:
        return [*log, *(one for each in more for one in each)]

    log = Annotated[list, DeltaChannel(added, snapshot_frequency=3)]
    graph = StateGraph(TypedDict("Delta", {"log": log}))
    graph.add_node("answer", lambda state: {"log": [f"answered {len(state['log'])}"]})
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=saver)


def build_meeting(saver: Any, *, defer: bool) -> Any:
    """Compile a graph that stops before the node where its two branches meet."""
    graph = StateGraph(State)
    for name in ("left + right", "other"):
        graph.add_node(name, lambda state, name=name: {"log": [name]})
        graph.add_edge(START, name)
    graph.add_node("both", lambda state: {"log": ["both"]}, defer=defer)
    graph.add_edge(["left + right", "other"], "both")
    graph.add_edge("both", END)
    return graph.compile(checkpointer=saver, interrupt_before=["both"])


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def start(saver: Any, thread: str, **options: Any) -> Any:
    """Run to the pause; return the interrupts."""
    graph = build(saver)
    return graph.invoke({"log": ["asked"]}, config(thread), **options)["__interrupt__"]


def resume(saver: Any, thread: str, **options: Any) -> Any:
    """Go on from the pause; return the state."""
    graph = build(saver)
    return graph.invoke(Command(resume="yes"), config(thread), **options)


LOG = ["asked", "planned", "paid: yes", "closed"]
"""What the state's log holds at the end."""


def history(saver: Any, thread: str) -> list[Any]:
    """Return what is stored of a thread, but for what differs from run to run."""
    return [
        (
            one.checkpoint["channel_values"],
            one.metadata["source"],
            one.metadata["step"],
            [(channel, _plain(value)) for _task, channel, value in one.pending_writes],
        )
        for one in saver.list(config(thread))
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [getattr(one, "value", one) for one in value]
    return value


def die_saving_the_plan(saver: Any, thread: str, effects: Path, *, when: str) -> None:
    """Run as an agent does, and die before or after the first node's step is saved."""
    from asgiref.sync import async_to_sync

    from hitl_approvals.checkpoints import rows
    from hitl_approvals.checkpoints.models import Checkpoint

    save = rows.save_checkpoint

    def dying(*args: Any, **options: Any) -> None:
        is_the_plan = Checkpoint.objects.exists()
        if is_the_plan and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        save(*args, **options)
        if is_the_plan:
            os.kill(os.getpid(), signal.SIGKILL)

    rows.save_checkpoint = dying
    graph = build(saver.one_run().saver, effects=effects)
    given = {"log": ["asked"]}
    async_to_sync(graph.ainvoke)(given, config(thread), durability="sync")


def main(what: str, thread: str, file: str) -> None:
    import django

    django.setup()
    from hitl_approvals.checkpoints import DjangoCheckpointSaver

    if what in {"before", "after"}:
        die_saving_the_plan(DjangoCheckpointSaver(), thread, Path(file), when=what)
    graph = build(DjangoCheckpointSaver(), effects=Path(file), die=what == "die")
    if what in {"start", "die"}:
        result = graph.invoke({"log": ["asked"]}, config(thread), durability="sync")
    elif what == "resume":
        result = graph.invoke(Command(resume="yes"), config(thread))
    else:
        result = graph.invoke(None, config(thread))
    print(result["log"], "__interrupt__" in result)


if __name__ == "__main__":
    main(*sys.argv[1:])

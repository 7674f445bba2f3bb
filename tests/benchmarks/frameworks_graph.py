"""The graph of the benchmark: one for LangGraph by itself, and for LangGraph through us."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

CALL = {"text": "hello"}


class State(TypedDict, total=False):
    call: dict[str, str]
    told: str


def graph_of(send: Callable[[str], str]) -> Any:
    """Return a graph that plans a call, and makes it once somebody has approved it."""

    def plan(state: State) -> State:
        return {"call": CALL}

    def act(state: State) -> State:
        return {"told": send(state["call"]["text"])}

    graph = StateGraph(State)
    graph.add_node("plan", plan)
    graph.add_node("act", act)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "act")
    graph.add_edge("act", END)
    return graph


def asking(text: str) -> str:
    """Do nothing, once a person has said yes: LangGraph's own way to ask."""
    said = interrupt({"name": "bench_send", "args": {"text": text}})
    return "sent" if said["type"] == "approve" else "refused"

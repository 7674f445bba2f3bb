"""A graph that stops for a person and goes on later, kept in the site's database."""

from __future__ import annotations

# begin graph
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from hitl_approvals.checkpoints import DjangoCheckpointSaver


class Refund(BaseModel):
    order: str
    amount: int


class State(TypedDict, total=False):
    refund: Refund
    result: str


def plan(state: State) -> State:
    return {"refund": Refund(order="A1", amount=120)}


def pay(state: State) -> State:
    amount = interrupt({"pay": state["refund"].amount})
    return {"result": f"paid {amount} for {state['refund'].order}"}


graph = StateGraph(State)
graph.add_node("plan", plan)
graph.add_node("pay", pay)
graph.add_edge(START, "plan")
graph.add_edge("plan", "pay")
graph.add_edge("pay", END)

refunds = graph.compile(checkpointer=DjangoCheckpointSaver(allow=[Refund]))
# end graph


# begin play
def play() -> None:
    """Ask, forget everything, and answer."""
    thread = {"configurable": {"thread_id": "customer-7"}}
    paused = refunds.invoke({}, thread)
    print(paused["__interrupt__"][0].value)
    # Another process, days later, needs the same graph and the thread's id.
    again = graph.compile(checkpointer=DjangoCheckpointSaver(allow=[Refund]))
    print(again.invoke(Command(resume=100), thread)["result"])


# end play

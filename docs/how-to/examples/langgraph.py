"""An agent of LangChain that refunds, and a person who decides."""

from __future__ import annotations

# begin agent
from decimal import Decimal
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from hitl_approvals import Edit, agent, resume, start_turn, tool
from hitl_approvals.models import PendingInterrupt


@tool(requires_approval=False, effect="none")
def find_order(order_id: str) -> dict[str, Any]:
    """Look an order up."""
    return {"order": order_id, "paid": "120.00"}


@tool(effect="unsafe", check_hint="Look the order up at the payment provider.")
def pay_back(order_id: str, amount: Decimal) -> str:
    """Pay money back to a customer."""
    print(f"paying {amount} back for {order_id}")
    return f"paid {amount}"


class ScriptedModel(GenericFakeChatModel):
    """Stands in for a real model; give `create_agent` the name of one instead."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def model() -> ScriptedModel:
    """Return a model that looks the order up and asks for a refund."""
    order, refund = {"order_id": "A1"}, {"order_id": "A1", "amount": "120"}
    replies = [
        AIMessage("", tool_calls=[{"id": "1", "name": "find_order", "args": order}]),
        AIMessage(
            "The order was paid; I refund all of it.",
            tool_calls=[{"id": "2", "name": "pay_back", "args": refund}],
        ),
        AIMessage("Your refund is on its way."),
    ]
    return ScriptedModel(messages=iter(replies))


@agent("refunds", kind="langgraph", tools=[find_order, pay_back])
def refunds(tools: list[Any]) -> Any:
    """Make LangChain's agent, once in each process."""
    return create_agent(model(), tools, system_prompt="You refund orders.")


# end agent


# begin play
def play() -> Any:
    """Ask for a refund, and approve less than the agent wanted to pay."""
    turn = start_turn("refunds", "Refund my order A1, please.", run=True)
    waiting = PendingInterrupt.objects.get(turn=turn)
    print(turn.status, waiting.tool_name, waiting.args)
    decision = Edit({"order_id": "A1", "amount": "100"}, reason="minus the fee")
    return resume(waiting.pk, decision).result


# end play


# begin graph
@agent("colors", kind="langgraph", tools=[pay_back])
def colors(tools: list[Any]) -> Any:
    """Make a graph of LangGraph that asks a person and calls a tool itself."""
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import interrupt

    def ask(state: dict[str, Any]) -> dict[str, Any]:
        color = interrupt({"question": "Which color?"}, response_schema=TEXT)
        return {"color": color, "order_id": state["order_id"]}

    def pay(state: dict[str, Any]) -> dict[str, Any]:
        # Pauses until a person has decided, and runs at most once.
        return {**state, "told": pay_back(state["order_id"], Decimal(5))}

    graph = StateGraph(dict)
    graph.add_node("ask", ask)
    graph.add_node("pay", pay)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "pay")
    graph.add_edge("pay", END)
    return graph


TEXT = {"type": "string"}
# end graph

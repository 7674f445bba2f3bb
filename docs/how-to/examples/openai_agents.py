"""An agent of the OpenAI Agents SDK that refunds, and a person who decides."""

from __future__ import annotations

# begin agent
from decimal import Decimal
from typing import Any

from agents import Agent
from agents.testing import ScriptedModel, assistant_message, function_call

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


def model() -> ScriptedModel:
    """Stand in for a real model; give `Agent(model=...)` the name of one instead."""
    order, refund = {"order_id": "A1"}, {"order_id": "A1", "amount": "120"}
    return ScriptedModel(
        [
            [function_call("find_order", order, call_id="call_1")],
            [
                assistant_message("The order was paid; I refund all of it."),
                function_call("pay_back", refund, call_id="call_2"),
            ],
            [assistant_message("Your refund is on its way.")],
        ]
    )


@agent("refunds", kind="openai_agents", tools=[find_order, pay_back])
def refunds(tools: list[Any]) -> Agent[Any]:
    """Make the SDK's agent, once in each process."""
    return Agent(
        name="refunds",
        instructions="You refund orders.",
        model=model(),
        tools=tools,
    )


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

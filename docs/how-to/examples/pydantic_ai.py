"""An agent of Pydantic AI that refunds, and a person who decides."""

from __future__ import annotations

# begin agent
from decimal import Decimal
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

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


def reply(messages: list[Any], _info: Any) -> ModelResponse:
    """Stand in for a real model; give `Agent` the name of one instead."""
    so_far = sum(isinstance(one, ModelResponse) for one in messages)
    if so_far == 0:
        call = ToolCallPart("find_order", {"order_id": "A1"}, "call_1")
        return ModelResponse(parts=[call])
    if so_far == 1:
        call = ToolCallPart("pay_back", {"order_id": "A1", "amount": "120"}, "call_2")
        why = TextPart("The order was paid; I refund all of it.")
        return ModelResponse(parts=[why, call])
    return ModelResponse(parts=[TextPart("Your refund is on its way.")])


@agent("refunds", kind="pydantic_ai", tools=[find_order, pay_back])
def refunds(tools: list[Any]) -> Agent[Any, str]:
    """Make the framework's agent."""
    return Agent(
        FunctionModel(reply),
        instructions="You refund orders.",
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

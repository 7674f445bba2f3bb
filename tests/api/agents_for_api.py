"""An agent that makes the calls, or asks the question, that its input names."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hitl_approvals import ToolFailed, Turn, agent, tool

RAN: list[tuple[str, Any]] = []
"""What tools really ran, in order, since the test began."""


@tool(name="api_refund", effect="unsafe")
def refund(order: str, amount: int, note: str = "") -> dict[str, Any]:
    """Refund an order to its customer.

    Args:
        order: The number on the invoice.
        amount: In cents.
        note: What the customer reads.
    """
    RAN.append(("api_refund", {"order": order, "amount": amount, "note": note}))
    return {"refunded": amount}


@tool(name="api_clean", effect="unsafe", allowed_decisions=("approve", "reject"))
def clean(order: str) -> None:
    """Fail with nothing done."""
    raise ToolFailed("no such order")


@tool(name="api_flaky", effect="unsafe", queue="api-team")
def flaky(order: str) -> None:
    """Break the connection halfway."""
    raise RuntimeError("the line went dead")


@tool(name="api_store", effect="unsafe")
def store(value: Any) -> Any:
    """Store any value."""
    RAN.append(("api_store", value))
    return value


@tool(name="api_login", effect="unsafe", redact=("token",), fixed=("host",))
def login(host: str, token: str, user: str = "root") -> str:
    """Log in somewhere.

    Args:
        host: Where.
        token: The secret.
        user: As whom.
    """
    RAN.append(("api_login", {"host": host, "token": token, "user": user}))
    return "in"


@agent("api_agent", tools=[refund, clean, flaky, store, login])
def api_agent(turn: Turn, prompt: Any) -> Any:
    """Do what the input says."""
    if "question" in prompt:
        return turn.interrupt(
            prompt["question"], response_schema=prompt.get("schema"), key="q"
        )
    calls = prompt.get("calls", [])
    messages = [
        {"role": "user", "content": "please"},
        {"role": "assistant", "content": "I have to.", "tool_calls": calls},
    ]
    return turn.call_tools(calls, messages=messages)


@tool(name="api_issue_refund", effect="unsafe")
def issue_refund(order_id: str, amount: Decimal) -> dict[str, Decimal]:
    """Refund an order to its customer."""
    return {"refunded": amount}


@agent("api_support", tools=[issue_refund])
def support(turn: Turn, prompt: str) -> str:
    """Play the agent of the documentation."""
    args = {"order_id": "A-1009", "amount": "120.00"}
    message = turn.call_tool(issue_refund, args, id="call_1")
    return "Refunded 120.00." if message["status"] == "ok" else message["content"]

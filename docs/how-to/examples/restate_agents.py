"""The agent and its tools, in the Django project."""

from __future__ import annotations

# begin agents
import os

from hitl_approvals import agent, tool
from hitl_approvals.engines import RestateWorkflow


@tool(effect="unsafe", check_hint="Look at the bank's own list.")
def issue_refund(order: str, amount: int) -> str:
    """Refund an order to its customer."""
    print(f"refunding {amount} for {order}")
    return f"refunded {amount}"


@agent("refunds", kind="restate", tools=[issue_refund])
def refunds() -> RestateWorkflow:
    return RestateWorkflow(
        ingress=os.environ.get("RESTATE_INGRESS", "http://127.0.0.1:8080"),
        admin=os.environ.get("RESTATE_ADMIN", "http://127.0.0.1:9070"),
        workflow="Refund",
    )


# end agents

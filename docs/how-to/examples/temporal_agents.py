"""The agent and its tools, in the Django project."""

from __future__ import annotations

# begin agents
import os

from hitl_approvals import agent, tool
from hitl_approvals.engines import TemporalWorkflow


@tool(effect="unsafe", check_hint="Look at the bank's own list.")
def issue_refund(order: str, amount: int) -> str:
    """Refund an order to its customer."""
    print(f"refunding {amount} for {order}")
    return f"refunded {amount}"


@agent("refunds", kind="temporal", tools=[issue_refund])
def refunds() -> TemporalWorkflow:
    return TemporalWorkflow(
        client=os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233"),
        workflow="Refund",
        task_queue="refunds",
    )


# end agents

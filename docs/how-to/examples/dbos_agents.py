"""The agent and its tools, in the Django project."""

from __future__ import annotations

# begin agents
import os

from hitl_approvals import agent, tool
from hitl_approvals.engines import DBOSWorkflow


@tool(effect="unsafe", check_hint="Look at the bank's own list.")
def issue_refund(order: str, amount: int) -> str:
    """Refund an order to its customer."""
    print(f"refunding {amount} for {order}")
    return f"refunded {amount}"


@agent("refunds", kind="dbos", tools=[issue_refund])
def refunds() -> DBOSWorkflow:
    return DBOSWorkflow(
        database=os.environ["DBOS_SYSTEM_DATABASE_URL"],
        workflow="refund",
        queue="refunds",
    )


# end agents

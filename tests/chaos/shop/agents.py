"""An agent that asks for a batch of calls of all modes, and then perhaps a question."""

from __future__ import annotations

from typing import Any

from hitl_approvals import ApprovalRejected, Turn, agent, tool
from tests.crash.site import outside
from tests.crash.site.agents import TOOLS, act


@tool(effect="unsafe", requires_approval=False)
def free(case: str, amount: int) -> dict[str, Any]:
    """Do what nobody has to approve."""
    return act("free", case, amount)


@agent("busy", tools=[*TOOLS, free])
def busy(turn: Turn, asked: dict[str, Any]) -> dict[str, Any]:
    """Ask for some calls, perhaps ask a question, then say what came of it."""

    def ask() -> dict[str, Any]:
        calls = [
            {
                "id": f"c{number}",
                "name": call["mode"],
                "args": {"case": call["case"], "amount": call["amount"]},
            }
            for number, call in enumerate(asked["calls"])
        ]
        return {"tool_calls": calls}

    def close() -> str:
        if outside.chance(asked["flaky"]):
            raise ConnectionError("The model is away.")
        return "closed"

    reply = turn.step("ask", ask)
    results = turn.call_tools(reply["tool_calls"])
    said = None
    if asked["question"]:
        try:
            said = turn.interrupt({"question": "Which one?"}, key="which")
        except ApprovalRejected as refusal:
            said = refusal.reason
    turn.step("close", close)
    return {"statuses": [one["status"] for one in results], "said": said}

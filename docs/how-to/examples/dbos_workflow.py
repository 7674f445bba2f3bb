"""The DBOS application with its workflow. Knows no Django."""

from __future__ import annotations

# begin workflow
import sys
import threading
from typing import Any

from dbos import DBOS

from hitl_approvals.engines.dbos import Approvals


@DBOS.step()
def ask_model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Stand for a model: it asks for one refund, then repeats what it was told."""
    if messages[-1]["role"] == "tool":
        return {"role": "assistant", "content": messages[-1]["content"], "calls": []}
    call = {
        "id": "call_1",
        "name": "issue_refund",
        "args": {"order": "A1", "amount": 120},
    }
    return {"role": "assistant", "content": "I will refund.", "calls": [call]}


@DBOS.workflow(name="refund")
def refund(prompt: str) -> str:
    approvals = Approvals()
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    while True:
        reply = ask_model(messages)
        messages.append(reply)
        if not reply["calls"]:
            return str(reply["content"])
        results = approvals.call_tools(
            reply["calls"], messages=messages, reason=reply["content"]
        )
        messages += [results[call["id"]]["message"] for call in reply["calls"]]


def main(database: str) -> None:
    DBOS(config={"name": "refunds", "system_database_url": database})
    DBOS.launch()
    DBOS.register_queue("refunds")
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
# end workflow

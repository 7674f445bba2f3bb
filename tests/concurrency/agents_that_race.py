"""An agent with three gated calls, whose effects are counted where they happen."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group

from hitl_approvals import Turn, agent, tool

CALLS = ("one", "two", "three")
MODEL_CALLS: list[str] = []


@tool(name="race_tx", effect="transactional")
def race_tx(name: str) -> dict[str, str]:
    """Leave one row for each time that this ran."""
    made = Group.objects.create(name=f"{name}-{Group.objects.count()}")
    return {"made": made.name}


def _model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    MODEL_CALLS.append(messages[0]["content"])
    if len(messages) > 1:
        return {"content": "done", "tool_calls": []}
    wanted = CALLS if messages[0]["content"] == "three" else CALLS[:1]
    return {
        "content": "three at once",
        "tool_calls": [
            {"id": name, "name": "race_tx", "args": {"name": name}} for name in wanted
        ],
    }


@agent("racer", tools=[race_tx])
def racer(turn: Turn, prompt: str) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    while True:
        reply = turn.step("model", _model, messages)
        messages.append({"role": "assistant", **reply})
        if not reply["tool_calls"]:
            return str(reply["content"])
        messages += turn.call_tools(reply["tool_calls"], messages=messages)

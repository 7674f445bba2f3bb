"""The no-op agent of the cycle benchmark, and the people who decide for it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, Permission, User

from hitl_approvals import Turn, agent, tool
from hitl_approvals.models import ReviewQueue


@tool(name="bench_send", effect="unsafe", queue="bench")
def bench_send(text: str) -> str:
    """Do nothing."""
    return "sent"


@agent("bench", tools=[bench_send])
def bench(turn: Turn, prompt: str) -> str:
    reply = turn.step("model", _first)
    told = turn.call_tools(reply["tool_calls"])
    return str(turn.step("model", _last, told))


def _first() -> dict[str, Any]:
    call = {"id": "a", "name": "bench_send", "args": {"text": "hello"}}
    return {"content": "I will send it.", "tool_calls": [call]}


def _last(told: list[dict[str, Any]]) -> str:
    return f"done: {told[0]['content']}"


def make_reviewer() -> User:
    """Make the reviewer of the design's budget: one group, one queue."""
    group = Group.objects.create(name="bench reviewers")
    group.permissions.add(Permission.objects.get(codename="decide_pendinginterrupt"))
    user = User.objects.create_user("bench")
    user.groups.add(group)
    queue = ReviewQueue.objects.create(slug="bench")
    queue.groups.add(group)
    return user

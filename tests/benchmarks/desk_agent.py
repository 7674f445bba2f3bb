"""The agent whose call the queue benchmark copies, and the reviewer who looks."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.contrib.auth.models import Group, Permission, User

from hitl_approvals import Turn, agent, start_turn, tool
from hitl_approvals.models import PendingInterrupt, ReviewQueue

QUEUES = ("bench-mail", "bench-money", "bench-ops")


@tool(name="issue_refund", effect="unsafe", queue="bench-money")
def issue_refund(
    order_id: str, amount: Decimal, currency: str, items: list[str], note: str
) -> str:
    """Refund an order to its customer."""
    return "refunded"


@agent("bench_desk", tools=[issue_refund])
def bench_desk(turn: Turn, prompt: str) -> str:
    reply = turn.step("model", _reply)
    messages = [{"role": "user", "content": prompt}]
    turn.call_tools(reply["tool_calls"], messages=messages)
    return "done"


def _reply() -> dict[str, Any]:
    args = {
        "order_id": "A-1042",
        "amount": "240.00",
        "currency": "EUR",
        "items": ["BL-900", "WARR-2Y"],
        "note": "The blender was broken on arrival.",
    }
    call = {"id": "a", "name": "issue_refund", "args": args}
    return {"content": "The order qualifies.", "tool_calls": [call]}


def make_call(by: User | None = None) -> PendingInterrupt:
    """Return one call that waits, with its turn."""
    turn = start_turn("bench_desk", "I want my money back.", requested_by=by, run=True)
    return PendingInterrupt.objects.select_related("turn").get(turn=turn)


def make_reviewer() -> User:
    """Make a reviewer of one group and three queues, who sees no queue of others."""
    group = Group.objects.create(name="bench reviewers")
    group.permissions.add(Permission.objects.get(codename="decide_pendinginterrupt"))
    user = User.objects.create_user("bench", is_staff=True)
    user.groups.add(group)
    for slug in QUEUES:
        queue, _made = ReviewQueue.objects.get_or_create(slug=slug)
        queue.groups.add(group)
    return user

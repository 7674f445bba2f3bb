"""Tools of every mode, and an agent that asks for whatever its script says."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from django.contrib.auth.models import Group

from hitl_approvals import Turn, agent, current_call, tool
from hitl_approvals.registry import Tool
from tests.support.world import world


class CardDeclined(Exception):
    """The bank said no: nothing was booked."""


def ask_policy(call: Any) -> Any:
    world.policy_calls.append(call)
    return world.policy(call)


def look_for(key: str) -> Any:
    world.looked_up.append(key)
    if isinstance(world.found, Exception):
        raise world.found
    return world.found


@tool(name="pay", effect="unsafe", clean_errors=[CardDeclined], fixed=["order"])
def pay(order: str, amount: Decimal, note: str = "") -> Any:
    """Pay an order.

    Args:
        order: Number of the order.
        amount: How much.
    """
    return world.act("pay", order=order, amount=amount, note=note)


@tool(name="mail", effect="unsafe", tags=["outside"], check_hint="Look at the outbox.")
def mail(to: str) -> Any:
    """Send a mail."""
    return world.act("mail", to=to)


@tool(name="note", effect="unsafe", requires_approval=False)
def note(text: str) -> Any:
    """Write a note; nobody has to approve."""
    return world.act("note", text=text)


@tool(name="read", effect="none", requires_approval=False)
def read(name: str) -> Any:
    """Read something."""
    return world.act("read", name=name)


@tool(name="read_secret", effect="none")
def read_secret(name: str) -> Any:
    """Read something that a person has to allow."""
    return world.act("read_secret", name=name)


@tool(name="book", effect="transactional", clean_errors=[CardDeclined])
def book(name: str) -> Any:
    """Make a row, and with it everything else or nothing."""
    Group.objects.create(name=f"{name}-{Group.objects.count()}")
    return world.act("book", name=name)


@tool(name="transfer", effect="idempotent", retention=3600)
def transfer(to: str) -> Any:
    """Transfer under the key that the other side honors."""
    underway = current_call()
    assert underway is not None
    world.keys.append(underway.idempotency_key)
    return world.act("transfer", to=to)


@tool(name="order", effect="lookup", lookup=look_for)
def order(item: str) -> Any:
    """Order something at a shop that can be asked afterwards."""
    underway = current_call()
    assert underway is not None
    world.keys.append(underway.idempotency_key)
    return world.act("order", item=item)


@tool(name="judged", effect="unsafe", requires_approval=ask_policy, tags=["own"])
def judged(amount: int) -> Any:
    """Ask the test's own policy."""
    return world.act("judged", amount=amount)


@tool(
    name="ship",
    effect="unsafe",
    queue="shipping",
    allowed_decisions=["approve", "reject"],
    expires_in=3600,
    execute_within=600,
)
def ship(
    when: datetime | None = None, speed: Literal["slow", "fast"] = "slow"
) -> dict[str, Any]:
    """Ship in a queue of its own."""
    made: dict[str, Any] = world.act("ship", when=when, speed=speed)
    return made


TOOLS: list[Tool[Any, Any]] = [
    pay,
    mail,
    note,
    read,
    read_secret,
    book,
    transfer,
    order,
    judged,
    ship,
]


def ask_model(script: list[Any], number: int) -> Any:
    world.model_calls.append(f"reply {number}")
    if number == len(script):
        return {"content": "done", "tool_calls": []}
    return {"content": f"reason {number}", "tool_calls": script[number]}


@agent("scripted", tools=TOOLS, version="2", accepts=["1"])
def scripted(turn: Turn, script: list[Any]) -> Any:
    """Ask for the calls of each reply; return all that the model was told."""
    messages: list[Any] = []
    told: list[Any] = []
    for number in range(len(script) + 1):
        reply = turn.step("model", ask_model, script, number)
        messages.append({"role": "assistant", **reply})
        if reply["tool_calls"]:
            answers = turn.call_tools(reply["tool_calls"], messages=messages)
            messages += answers
            told += answers
    return told


def call(name: str, id: str | None = None, /, **args: Any) -> dict[str, Any]:  # noqa: A002
    """Write a call as a model does."""
    made = {"name": name, "args": args}
    return made if id is None else {"id": id, **made}

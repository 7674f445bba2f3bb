"""The support agent and its tools; found by itself, like `admin.py` and `tasks.py`."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from typing import Annotated, Any

from django.conf import settings
from pydantic import Field

from example_project.shop.frameworks import FUNCTION, made_of
from example_project.shop.model import ask_model
from example_project.shop.models import Order, Refund
from hitl_approvals import CallInfo, ToolFailed, Turn, agent, tool

KIND = settings.SHOP_AGENT_KIND
Money = Annotated[Decimal, Field(gt=0, max_digits=10, decimal_places=2)]


def above_limit(call: CallInfo) -> list[str]:
    """Ask a person when more money is at stake than the agent may spend alone."""
    return ["money"] if call.args["amount"] > settings.SHOP_REFUND_LIMIT else []


@tool(requires_approval=False, effect="none")
def lookup_order(order: str) -> dict[str, str]:
    """Look an order up.

    Args:
        order: Number of the order.
    """
    found = _order(order)
    return {
        "order": found.number,
        "customer": found.customer,
        "refundable": str(found.refundable()),
        "currency": found.currency,
    }


@tool(
    requires_approval=above_limit,
    queue="refunds",
    # The refund is a row in our own database: it and the record that the call ran are
    # committed together, so that it happens exactly once.
    effect="transactional",
    fixed=["order"],
)
def issue_refund(order: str, amount: Money, reason: str) -> str:
    """Give a customer money back.

    Args:
        order: Number of the order.
        amount: In the order's currency.
        reason: Why, for the books.
    """
    found = _order(order, for_update=True)
    if amount > found.refundable():
        raise ToolFailed(f"Only {found.refundable()} of {order} can be refunded.")
    refund = Refund.objects.create(order=found, amount=amount)
    return f"Refund {refund.pk}: {amount} {found.currency} for order {order}."


@tool(
    # An e-mail cannot be taken back, and whether one went out cannot be found out
    # here. If the worker dies in the middle, a person is asked instead.
    effect="unsafe",
    timeout=10,
    check_hint="Look for the order and the subject in the outbox file.",
)
def email_customer(order: str, subject: str, body: str) -> str:
    """Write to the customer of an order.

    Args:
        order: Number of the order.
        subject: What the customer sees first.
        body: Plain text.
    """
    customer = _order(order).customer
    message = {"to": customer, "order": order, "subject": subject, "body": body}
    _append_to_outbox(json.dumps(message))
    return f"Sent “{subject}” to {customer}."


@agent(
    "support",
    tools=[lookup_order, issue_refund, email_customer],
    kind=KIND,
    # What one framework has paused, another one could not go on with.
    version="1" if KIND == FUNCTION else KIND,
)
@made_of(KIND, model=settings.SHOP_MODEL)
def support(turn: Turn, prompt: str) -> str:
    """Handle a complaint: talk with the model until it has nothing more to do."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    while True:
        reply = turn.step("model", ask_model, messages)
        messages.append(reply)
        if not reply["tool_calls"]:
            return str(reply["content"])
        messages += turn.call_tools(reply["tool_calls"], messages=messages)


def _order(number: str, *, for_update: bool = False) -> Order:
    orders = Order.objects.select_for_update() if for_update else Order.objects.all()
    try:
        return orders.get(number=number)
    except Order.DoesNotExist:
        raise ToolFailed(f"There is no order {number}.") from None


def _append_to_outbox(line: str) -> None:
    settings.SHOP_OUTBOX.mkdir(parents=True, exist_ok=True)
    path = settings.SHOP_OUTBOX / "mail.jsonl"
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w"
    ) as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())

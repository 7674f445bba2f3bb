"""Agents and tools that the tests of the review desk drive."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from hitl_approvals import Turn, agent, tool

RAN: list[tuple[str, dict[str, Any]]] = []
"""What ran, with what; tests clear it."""


class Item(BaseModel):
    sku: str
    quantity: int = 1


@tool(
    name="desk_refund",
    effect="transactional",
    tags=["money"],
    redact=["payout_token"],
    fixed=["order_id"],
)
def desk_refund(
    order_id: str,
    amount: Decimal,
    currency: Literal["EUR", "GBP", "USD"],
    items: list[Item],
    book_on: datetime | None = None,
    notify_customer: bool = False,
    note: Annotated[str, Field(max_length=200)] = "",
    payout_token: str = "",
) -> dict[str, Any]:
    """Refund an order to its customer.

    Args:
        amount: Paid back to the customer; at most what the order cost.
    """
    RAN.append(("desk_refund", {"order_id": order_id, "amount": amount}))
    return {"refunded": str(amount)}


@tool(name="desk_anything", effect="transactional")
def desk_anything(
    text: str = "",
    number: float = 0.5,
    whole: int = 5,
    flag: bool | None = None,
    day: date | None = None,
    data: Any = None,
    maybe: str | None = None,
) -> str:
    """Take any value, for what it looks like."""
    RAN.append(("desk_anything", {"text": text, "whole": whole, "data": data}))
    return "ok"


@tool(name="desk_strict", effect="transactional")
def desk_strict(email: str, count: int) -> str:
    """Refuse some values that its schema lets pass."""
    RAN.append(("desk_strict", {"email": email, "count": count}))
    return "ok"


@tool(
    name="desk_charge",
    effect="unsafe",
    timeout=1,
    check_hint="Search the card company's log for the key.",
)
def desk_charge(customer: str, amount: Decimal) -> dict[str, Any]:
    """Charge a card."""
    RAN.append(("desk_charge", {"customer": customer}))
    raise OSError("the line went dead")


@tool(name="desk_hurry", effect="transactional", expires_in=600)
def desk_hurry(service: str) -> str:
    """Do something that is needed soon."""
    return service


@tool(
    name="desk_careful",
    effect="unsafe",
    allowed_decisions=("approve", "reject"),
    queue="vault",
)
def desk_careful(what: str) -> str:
    """Do something that may not be edited."""
    RAN.append(("desk_careful", {"what": what}))
    return what


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@tool(name="desk_typed", effect="transactional")
def desk_typed(
    price: Decimal,
    at: datetime,
    key: UUID,
    colour: Colour,
    item: Item,
    whole: int = 1,
) -> str:
    """Take values of types that JSON does not have."""
    given = {"price": price, "at": at, "key": key, "colour": colour, "item": item}
    RAN.append(("desk_typed", {**given, "whole": whole}))
    return "a\x00b\u202e"


@tool(name="desk_look", effect="none", requires_approval=False)
def desk_look(what: str) -> str:
    """Look something up, which nobody has to approve."""
    return f"found {what}"


@agent(
    "desk_agent",
    tools=[
        desk_refund,
        desk_anything,
        desk_strict,
        desk_charge,
        desk_hurry,
        desk_careful,
        desk_look,
        desk_typed,
    ],
)
def desk_agent(turn: Turn, asked: Any) -> Any:
    """Make the calls that it was told to make, and ask what it was told to ask."""
    options = turn.execute_options or {}
    if "question" in options:
        return turn.interrupt(
            options["question"], response_schema=options.get("schema")
        )
    return turn.call_tools(
        options.get("calls", []),
        messages=options.get("messages", []),
        reason=options.get("reason"),
    )

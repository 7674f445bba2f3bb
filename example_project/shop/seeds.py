"""The orders that the example starts with."""

from __future__ import annotations

from decimal import Decimal

from example_project.shop.models import Order

ORDERS = [
    ("A-1001", "mina@customers.example", Decimal("39.90")),
    ("A-1002", "jonas@customers.example", Decimal("240.00")),
    ("A-1003", "olu@customers.example", Decimal("1280.00")),
]


def seed_orders() -> None:
    """Make the orders that are missing; the others stay as they are."""
    for number, customer, amount in ORDERS:
        Order.objects.get_or_create(
            number=number, defaults={"customer": customer, "amount": amount}
        )

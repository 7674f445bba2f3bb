"""The orders that the example starts with."""

from __future__ import annotations

from decimal import Decimal

from django.conf import settings

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


def order_to_complain_about() -> Order:
    """Return an order that is worth asking a person about and was not refunded yet."""
    untouched = Order.objects.filter(
        refunds=None, amount__gt=settings.SHOP_REFUND_LIMIT
    )
    found = untouched.order_by("number").first()
    if found is not None:
        return found
    number = f"A-{1001 + Order.objects.count()}"
    return Order.objects.create(
        number=number, customer="ada@customers.example", amount=Decimal("75.50")
    )

"""What the shop knows: orders, and the money that went back."""

from __future__ import annotations

from decimal import Decimal

from django.db import models
from django.db.models import Sum


class Order(models.Model):
    """Something that a customer bought."""

    number = models.CharField(max_length=20, unique=True)
    customer = models.EmailField()
    amount = models.DecimalField(max_digits=10, decimal_places=2)
    currency = models.CharField(max_length=3, default="EUR")

    def __str__(self) -> str:
        return self.number

    def refundable(self) -> Decimal:
        """Return what was paid and not yet given back."""
        refunded: Decimal | None = self.refunds.aggregate(sum=Sum("amount"))["sum"]
        return self.amount - (refunded or Decimal(0))


class Refund(models.Model):
    """Money that went back to a customer."""

    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="refunds")
    amount = models.DecimalField(max_digits=10, decimal_places=2)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.amount} {self.order.currency} for {self.order}"

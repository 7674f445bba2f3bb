"""Orders and refunds in the admin, to look at."""

from __future__ import annotations

from django.contrib import admin

from example_project.shop.models import Order, Refund


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The orders of the shop."""

    list_display = ["number", "customer", "amount", "currency"]


@admin.register(Refund)
class RefundAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The refunds that were made."""

    list_display = ["order", "amount", "created_at"]
    list_select_related = ["order"]

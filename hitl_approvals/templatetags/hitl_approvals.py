"""`{% load hitl_approvals %}{% hitl_status %}`: the state of approvals on any admin page."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context

register = template.Library()


@register.inclusion_tag(
    "admin/hitl_approvals/_status.html", name="hitl_status", takes_context=True
)
def hitl_status(context: Context) -> dict[str, Any]:
    """Show what is open, owed, in doubt and stuck; nothing to whoever may see no queue."""
    request = context.get("request")
    user = getattr(request, "user", None)
    if request is None or user is None or not user.is_active:
        return {"status": None}
    # Django loads every library at start-up, also where there is no admin.
    from hitl_approvals.admin import status_line

    site = getattr(request, "current_app", None) or "admin"
    return {"status": status_line.line(user, site)}

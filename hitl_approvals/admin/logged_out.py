"""What a person sees who was logged out while typing: nothing recorded, nothing lost."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from hitl_approvals.admin import parsing
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.text import plain, val

_OWN = (
    "chosen",
    "csrfmiddlewaretoken",
    "decision",
    "do",
    "key",
    "revision",
    "row",
    "seen",
    "step",
)


def logged_out(desk: DeskAdmin, request: HttpRequest, back: str) -> HttpResponse:
    """Show what was posted, so that it can be copied; reads no row."""
    typed = [
        (plain(name, 40), val(parsing.lines(value)))
        for name, value in request.POST.items()
        if name not in _OWN and isinstance(value, str) and value.strip()
    ]
    login = reverse("admin:login", current_app=desk.admin_site.name)
    context = {
        "title": _("You were logged out"),
        "typed": typed,
        "login_url": f"{login}?{urlencode({'next': back})}",
    }
    return desk.page(request, "logged_out.html", context, status=403)

"""Guards the desk's own pages like the admin guards its own, and keeps what was typed."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect

from hitl_approvals.admin.base import DeskAdmin, View, outside_transactions
from hitl_approvals.admin.logged_out import logged_out


def guarded(desk: DeskAdmin, page: View, back: Callable[..., str]) -> View:
    """Return a view that lets only those in whom the admin lets in.

    Args:
        desk: The model admin that the page belongs to.
        page: Called with the request and what the address contains.
        back: Returns, from the same, where somebody goes on who was logged out.
    """
    inside = desk.admin_site.admin_view(page)

    def door(request: HttpRequest, **route: Any) -> HttpResponse:
        if request.method == "POST" and not desk.admin_site.has_permission(request):
            return logged_out(desk, request, back(request, **route))
        return inside(request, **route)

    outer: Any = csrf_protect(never_cache(door))
    update_wrapper(outer, page)
    outer.admin_site = desk.admin_site
    # Read by LoginRequiredMiddleware.
    outer.login_url = reverse_lazy("admin:login", current_app=desk.admin_site.name)
    return outside_transactions(outer)

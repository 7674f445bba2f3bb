"""The start page: what is here, where to go, and a form that starts a turn."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from hitl_approvals import start_turn
from hitl_approvals.models import AgentTurn

EXAMPLE = "Order A-1002 arrived broken. Refund 240.00 EUR and write to the customer."

API_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)
"""Swagger UI draws its icons from `data:`; nothing comes from another site."""


class SignedInRequest(HttpRequest):
    """A request that `login_required` has let through."""

    user: User


class ComplaintForm(forms.Form):
    """What a customer complains about."""

    prompt = forms.CharField(
        label="Complaint",
        max_length=2000,
        initial=EXAMPLE,
        widget=forms.Textarea(attrs={"rows": 3}),
    )


@require_safe
def start_page(request: HttpRequest) -> HttpResponse:
    """Show what is here, and what became of the visitor's own turns."""
    return _page(request, ComplaintForm())


@require_safe
def api_page(request: HttpRequest) -> HttpResponse:
    """Show the REST API, to be read and tried out with the visitor's own session."""
    # The script sends the cookie's value with whatever writes.
    get_token(request)
    response = render(request, "shop/api.html")
    response["Content-Security-Policy"] = API_PAGE_POLICY
    return response


@require_POST
@login_required
@permission_required("hitl_approvals.add_agentturn", raise_exception=True)
def ask_support(request: SignedInRequest) -> HttpResponse:
    """Start a turn of the support agent; a worker takes it from there."""
    form = ComplaintForm(request.POST)
    if not form.is_valid():
        return _page(request, form)
    start_turn("support", form.cleaned_data["prompt"], requested_by=request.user)
    messages.success(
        request,
        "The agent is at work. An e-mail, and a refund above the limit, wait for a reviewer.",
    )
    return redirect("start")


def _page(request: HttpRequest, form: ComplaintForm) -> HttpResponse:
    turns = AgentTurn.objects.none()
    if request.user.is_authenticated:
        own = AgentTurn.objects.filter(requested_by=request.user)
        turns = own.order_by("-created_at")[:10]
    may_ask = request.user.has_perm("hitl_approvals.add_agentturn")
    context = {"form": form, "may_ask": may_ask, "turns": turns}
    return render(request, "shop/start.html", context)

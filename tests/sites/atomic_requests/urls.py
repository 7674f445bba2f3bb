"""The site's URLs: ours, and a view of its own that decides inside its transaction."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from hitl_approvals import Approve, services


def decide_and_more(request: HttpRequest, interrupt_id: UUID) -> HttpResponse:
    """Decide as one part of the request's work; what comes after may fail."""
    assert connection.in_atomic_block
    services.decide(interrupt_id, Approve(), by=None, via="site")
    if "fail" in request.GET:
        raise RuntimeError("the rest of the request failed")
    return HttpResponse("done")


urlpatterns: list[Any] = [
    path("decide/<uuid:interrupt_id>/", decide_and_more),
    path("", include("tests.urls")),
]

"""The site's only door: the API."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [path("api/", include("hitl_approvals.api.urls"))]

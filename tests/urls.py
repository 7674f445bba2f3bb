"""The URLs of the site that the tests visit: the admin and the API."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("api/", include("hitl_approvals.api.urls")),
]

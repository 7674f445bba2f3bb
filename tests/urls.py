"""The URLs of the site that the tests visit: the admin and the API."""

from __future__ import annotations

from importlib.util import find_spec

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [path("admin/", admin.site.urls)]

# Only until the API lands.
if find_spec("hitl_approvals.api") and find_spec("hitl_approvals.api.urls"):
    urlpatterns.append(path("api/", include("hitl_approvals.api.urls")))

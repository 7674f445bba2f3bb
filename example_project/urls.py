"""The URLs of the example site: a start page, the admin and the API."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from example_project.shop import views

urlpatterns = [
    path("", views.start_page, name="start"),
    path("turns/", views.ask_support, name="ask-support"),
    path("admin/", admin.site.urls),
    path("api/", include("hitl_approvals.api.urls")),
    path("api-docs/", views.api_page, name="api-docs"),
]

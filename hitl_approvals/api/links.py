"""Addresses of our own resources, under whatever prefix and namespace a site put them."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework.request import Request

APP_NAME = "hitl_approvals_api"


def link(request: Request, name: str, pk: Any) -> str:
    """Return the absolute address of a resource."""
    match = request.resolver_match
    if match is None:  # a view that was called past the URLs, as request factories do
        return reverse(f"{APP_NAME}:{name}", kwargs={"pk": str(pk)})
    # The namespace and the captured values of this very request: a site may include us
    # twice, or below a prefix of its own such as `<tenant>/`.
    kwargs = {**match.kwargs, "pk": str(pk)}
    path = reverse(f"{match.namespace}:{name}", kwargs=kwargs)
    return request.build_absolute_uri(path)

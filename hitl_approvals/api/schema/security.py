"""Who may call: the security schemes of our document, from the site's authenticators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension

from hitl_approvals.api.schema.shapes import Shape
from hitl_approvals.api.views import ApprovalsViewSet

CLIENT = "clientToken"
SESSION = "cookieAuth"
CSRF = "csrfToken"

Requirement = dict[str, list[str]]


class ClientTokenScheme(OpenApiAuthenticationExtension):
    """The token of a remote agent."""

    target_class = "hitl_approvals.api.clients.AgentClientAuthentication"
    name = CLIENT

    def get_security_definition(self, auto_schema: Any) -> Shape:
        """Describe the header."""
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "hac_…",
            "description": "The token of a remote agent, as it was shown once.",
        }


def for_caller(
    offered: Iterable[Requirement], view: ApprovalsViewSet[Any], *, writes: bool
) -> list[Requirement]:
    """Return what an action takes: some are for remote agents too, or for them alone.

    A session needs the token against forged requests for whatever writes.
    """
    clients_alone = view.action in view.client_only_actions
    found: list[Requirement] = []
    for one in offered:
        if CLIENT in one:
            if view.action not in view.client_actions:
                continue
        elif clients_alone:
            continue
        found.append({**one, CSRF: []} if writes and SESSION in one else one)
    return found


def csrf() -> Shape:
    """Describe the header against forged requests."""
    name = settings.CSRF_HEADER_NAME.removeprefix("HTTP_").replace("_", "-").title()
    return {
        "type": "apiKey",
        "in": "header",
        "name": name,
        "description": f"The value of the cookie `{settings.CSRF_COOKIE_NAME}`.",
    }

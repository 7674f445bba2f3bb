"""Agent clients at the door: their tokens, what is open to them, and how often."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from hitl_approvals.exceptions import ClientNotAllowed, ReviewerNotAllowed
from hitl_approvals.models import AgentClient
from hitl_approvals.services import client_tokens
from hitl_approvals.services.client_limits import limit_of
from hitl_approvals.types import AgentPrincipal

if TYPE_CHECKING:
    from rest_framework.views import APIView

CHALLENGE = 'Bearer realm="hitl_approvals"'
WINDOW = 60
"""Seconds over which the requests of a client are counted."""
_SAFE = ("GET", "HEAD", "OPTIONS")
_BEARER = re.compile(r"\s*bearer\s+(\S.*)", re.IGNORECASE | re.DOTALL)


class AgentClientAuthentication(BaseAuthentication):
    """Lets agent clients in by their token; every other credential is the site's matter."""

    def authenticate(
        self, request: Request
    ) -> tuple[AgentPrincipal, AgentClient] | None:
        """Return who calls and its client, or None if the site is to ask.

        Raises:
            AuthenticationFailed: The token is unknown, over or revoked; which, is not
                told.
        """
        token = bearer_token(request)
        if token is None:
            return None
        client = client_tokens.authenticate(token)
        if client is None:
            raise AuthenticationFailed("This agent client's token is not let in.")
        return AgentPrincipal(client.pk, client.name), client

    def authenticate_header(self, request: Request) -> str:
        """Return what a 401 asks for."""
        return CHALLENGE


class OpenToThisCaller(BasePermission):
    """Refuses clients what a view does not open to them, and people what is theirs alone.

    A view opens nothing by itself: it names in `client_actions` what a client may do,
    and in `client_only_actions` what nobody else may.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return True.

        Raises:
            ClientNotAllowed: This is for people.
            ReviewerNotAllowed: This is for agent clients.
        """
        action = getattr(view, "action", None)
        if action in (None, "metadata"):  # answered with 405
            return True
        if client_of(request) is None:
            if action in getattr(view, "client_only_actions", ()):
                raise ReviewerNotAllowed(
                    "Only agents that run elsewhere do this; it takes the token of an "
                    "agent client."
                )
        elif action not in getattr(view, "client_actions", ()):
            raise ClientNotAllowed(
                "An agent client may not do this; it takes a person's account."
            )
        return True


class ClientThrottle(BaseThrottle):
    """Counts the writes of each client by the minute, in the site's default cache."""

    def __init__(self) -> None:
        self._wait: float | None = None

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Tell whether a client has a write left in this minute."""
        client = client_of(request)
        if client is None or request.method in _SAFE:
            return True
        most = limit_of(client, "per_minute")
        if most is None:
            return True
        minute, into = divmod(time.time(), WINDOW)
        self._wait = WINDOW - into
        return _count(f"hitl_approvals:writes:{client.pk}:{int(minute)}") <= most

    def wait(self) -> float | None:
        """Return for how many seconds the minute goes on."""
        return self._wait


def bearer_token(request: Any) -> str | None:
    """Return the token of an agent client that a request carries, right or wrong."""
    match = _BEARER.fullmatch(request.META.get("HTTP_AUTHORIZATION", ""))
    token = "" if match is None else match[1].strip()
    return token if token.startswith(client_tokens.PREFIX) else None


def client_of(request: Request) -> AgentClient | None:
    """Return the agent client that calls; None is a person."""
    user: Any = request.user
    client: Any = request.auth
    return client if isinstance(user, AgentPrincipal) else None


def _count(key: str) -> int:
    # Two minutes, so that no clock's difference counts a minute twice.
    if cache.add(key, 1, 2 * WINDOW):
        return 1
    try:
        return int(cache.incr(key))
    except ValueError:  # it fell out of the cache in between
        return 1

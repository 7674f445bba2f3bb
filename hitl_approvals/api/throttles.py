"""How often a person may call, by what the call is for; off unless the site says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.throttling import SimpleRateThrottle

from hitl_approvals.types import AgentPrincipal

if TYPE_CHECKING:
    from rest_framework.views import APIView

READ, DECIDE, START = "hitl_read", "hitl_decide", "hitl_start"
SCOPES = (READ, DECIDE, START)
"""Names of rates in the site's `DEFAULT_THROTTLE_RATES`."""

_STARTS = {("turn", "create"), ("turn", "fork")}


class RoleThrottle(SimpleRateThrottle):
    """Counts the calls of each person in three roles: reader, reviewer, backend."""

    def __init__(self) -> None:
        """Wait for the request: it says which rate counts."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Tell whether this person has a call of this kind left."""
        caller: Any = request.user
        if isinstance(caller, AgentPrincipal):  # has limits of its own
            return True
        self.scope = scope_of(request, view)
        # Read anew each time, so that `override_settings` works.
        rates: Any = api_settings.DEFAULT_THROTTLE_RATES or {}
        self.rate = rates.get(self.scope)
        self.num_requests, self.duration = self.parse_rate(self.rate)
        return super().allow_request(request, view)

    def get_cache_key(self, request: Request, view: APIView) -> str:
        """Return what this person's calls are counted under."""
        return self.cache_format % {"scope": self.scope, "ident": request.user.pk}


def scope_of(request: Request, view: APIView) -> str:
    """Return the name of the rate that a call counts for."""
    if request.method != "POST":
        return READ
    place = (getattr(view, "basename", None), getattr(view, "action", None))
    return START if place in _STARTS else DECIDE

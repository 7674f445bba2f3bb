"""What all our endpoints share: who may call, how errors look, which headers go out."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from typing import Any, TypeVar, cast
from uuid import uuid4

from django.apps import apps
from django.db import connections, transaction
from django.db.models import Model
from django.http import HttpRequest
from rest_framework.authentication import (
    BaseAuthentication,
    SessionAuthentication,
    TokenAuthentication,
)
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.pagination import BasePagination
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle
from rest_framework.viewsets import GenericViewSet

from hitl_approvals.api import errors
from hitl_approvals.api.clients import (
    AgentClientAuthentication,
    ClientThrottle,
    OpenToThisCaller,
    bearer_token,
)
from hitl_approvals.api.parsers import BodyRequest, StrictJSONParser
from hitl_approvals.api.renderers import ExactJSONRenderer
from hitl_approvals.api.throttles import RoleThrottle
from hitl_approvals.types import Person

logger = logging.getLogger("hitl_approvals.api")

M = TypeVar("M", bound=Model)

REPLAYED = "Idempotency-Replayed"
"""Header of an answer that was stored when the same request came before."""

_SANE_ID = re.compile(r"[A-Za-z0-9._:+/=@-]{1,128}")


class ApprovalsViewSet(GenericViewSet[M]):
    """Fixes everything that a site's own REST framework settings would change.

    Left to the site: who is authenticated (`DEFAULT_AUTHENTICATION_CLASSES`, if it sets
    them) and how often one may call (`DEFAULT_THROTTLE_CLASSES`).
    """

    parser_classes = [StrictJSONParser]
    renderer_classes = [ExactJSONRenderer]
    permission_classes = [IsAuthenticated, OpenToThisCaller]
    client_actions: Collection[str] = ()
    """What agent clients may do too."""
    client_only_actions: Collection[str] = ()
    """What takes the token of an agent client."""
    content_negotiation_class = DefaultContentNegotiation
    # It would list every row that a field could point to.
    metadata_class = None
    versioning_class = None
    filter_backends = []
    pagination_class: type[BasePagination] | None = None
    http_method_names = ["get", "head", "post"]
    # Whatever comes here is answered by us: no id leads to the site's own 404 page.
    lookup_value_regex = "[^/]+"

    @classmethod
    def as_view(cls, actions: Any = None, **initkwargs: Any) -> Any:
        """Return the view, exempt from `ATOMIC_REQUESTS` on every database.

        A decision wakes its worker after its own commit; inside a request's transaction
        that would be after the response, and an error later on would take it back.
        """
        view: Any = super().as_view(actions, **initkwargs)
        for alias in connections:
            view = transaction.non_atomic_requests(alias)(view)
        return view

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Return ours for agent clients, then the site's choice for people.

        That is tokens (if installed) and sessions if it chooses nothing.
        """
        return [AgentClientAuthentication(), *_for_people()]

    def get_authenticate_header(self, request: Request) -> Any:
        """Return what a 401 asks for: the site's own, unless a client's token failed."""
        asked = self.get_authenticators()
        first = 0 if bearer_token(request) is not None else 1
        return asked[first].authenticate_header(request) if asked[first:] else None

    def get_throttles(self) -> list[BaseThrottle]:
        """Return the site's own, and ours for agent clients."""
        return [*super().get_throttles(), RoleThrottle(), ClientThrottle()]

    def initialize_request(
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> Request:
        """Return a request that reads JSON as strictly as the gate does."""
        super().initialize_request(request, *args, **kwargs)  # tells us the action
        return BodyRequest(
            request,
            parsers=self.get_parsers(),
            authenticators=self.get_authenticators(),
            negotiator=self.get_content_negotiator(),
            parser_context=self.get_parser_context(request),
        )

    def get_exception_handler(self) -> Any:
        """Return our own handler, whatever the site's is."""
        return errors.exception_handler

    def interrupt_as_it_is_now(self) -> Any:
        """Return what an error shows of the interrupt that it is about, if any."""
        return None

    def finalize_response(
        self,
        request: Request,
        response: Response,
        *args: Any,
        **kwargs: Any,
    ) -> Response:
        """Add what every response of ours carries."""
        final = super().finalize_response(request, response, *args, **kwargs)
        final["X-Request-ID"] = given = request_id(request)
        if request.method == "POST":
            place, code = request.get_full_path(), final.status_code
            extra = {"request_id": given, "status_code": code}
            logger.info("POST %s: %s, request %s", place, code, given, extra=extra)
        # Arguments are nobody else's business, proxies and browser caches included.
        final.setdefault("Cache-Control", "private, no-store")
        return final


def _for_people() -> list[BaseAuthentication]:
    if "DEFAULT_AUTHENTICATION_CLASSES" in api_settings.user_settings:
        chosen: Any = api_settings.DEFAULT_AUTHENTICATION_CLASSES
        return [each() for each in chosen]
    session = SessionAuthentication()
    if apps.is_installed("rest_framework.authtoken"):
        return [TokenAuthentication(), session]
    return [session]


def request_id(request: Request) -> str:
    """Return the id that came with a request if it is a sane one, else a new one."""
    given = request.headers.get("X-Request-ID", "")
    return given if _SANE_ID.fullmatch(given) else uuid4().hex


def person(request: Request) -> Person:
    """Return who is asking; `IsAuthenticated` has let nobody else through."""
    return cast("Person", request.user)

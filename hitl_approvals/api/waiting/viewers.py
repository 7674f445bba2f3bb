"""Who waits: whether it may still see what it waits for, and who sees the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Model
from django.urls import get_script_prefix, get_urlconf, set_script_prefix, set_urlconf
from django.utils import translation
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from hitl_approvals.conf import hitl_settings
from hitl_approvals.models import AgentClient
from hitl_approvals.services.client_limits import limit_of
from hitl_approvals.services.transactions import alias
from hitl_approvals.types import AgentPrincipal


def account_of(request: Request) -> Hashable:
    """Return what tells one account or agent client from another."""
    return type(request.user), request.user.pk


def places_of(request: Request) -> int | None:
    """Return how many requests of this account may wait at once; None is no limit."""
    if isinstance(request.auth, AgentClient):
        return limit_of(request.auth, "waiting")
    return hitl_settings.waiters_each


@dataclass(frozen=True, slots=True)
class Place:
    """Under which address a request came, which stands in links, and in which language."""

    namespace: str
    kwargs: tuple[tuple[str, str], ...]
    scheme: str
    host: str
    prefix: str
    urlconf: Any
    language: str | None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Let this thread be there: where it is, is kept by thread."""
        before = get_script_prefix(), get_urlconf()
        set_script_prefix(self.prefix)
        set_urlconf(self.urlconf)
        try:
            with translation.override(self.language):
                yield
        finally:
            set_script_prefix(before[0])
            set_urlconf(before[1])


def place_of(request: Request) -> Place:
    """Return where a request is that is being served in this thread."""
    match = request.resolver_match
    kwargs = {} if match is None else match.kwargs
    return Place(
        "" if match is None else match.namespace,
        tuple(sorted((k, str(v)) for k, v in kwargs.items() if k != "pk")),
        request.scheme or "",
        request.get_host(),
        get_script_prefix(),
        get_urlconf(),
        translation.get_language(),
    )


def viewer_of(request: Request) -> Hashable:
    """Return what those have in common that see the same of a row, now and later."""
    auth: Any = request.auth
    credential = (type(auth), auth.pk) if isinstance(auth, Model) else None
    return account_of(request), credential


def clients_of(requests: Iterable[Request]) -> dict[UUID, AgentClient]:
    """Read the agent clients that ask, as far as they are still let in."""
    ids = {one.auth.pk for one in requests if isinstance(one.auth, AgentClient)}
    if not ids:
        return {}
    rows = AgentClient.objects.using(alias()).filter(revoked_at__isnull=True)
    return rows.in_bulk(ids)


def renew(request: Request, clients: Mapping[UUID, AgentClient]) -> None:
    """Read anew who asks: rights are kept on the object that a request began with.

    What a site keeps outside of rows, such as a signed token, counts as it did when the
    request came.

    Raises:
        AuthenticationFailed: The account or its credential is gone, or closed.
    """
    auth: Any = request.auth
    if isinstance(auth, AgentClient):
        request.auth = _again(clients.get(auth.pk))
    elif isinstance(auth, Model):
        request.auth = _again(type(auth)._default_manager.filter(pk=auth.pk).first())  # noqa: SLF001
    user: Any = request.user
    if isinstance(user, AgentPrincipal) or not isinstance(user, Model):
        return
    found: Any = _again(type(user)._default_manager.filter(pk=user.pk).first())  # noqa: SLF001
    if not getattr(found, "is_active", True):
        raise AuthenticationFailed
    request.user = found


def _again(found: Model | None) -> Model:
    if found is None:
        raise AuthenticationFailed
    return found

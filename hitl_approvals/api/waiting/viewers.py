"""Who waits: whether it may still see what it waits for, and who sees the same."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from django.db.models import Model
from django.urls import get_script_prefix
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


def same_view(request: Request) -> Hashable:
    """Return what two requests have in common that are shown the same of one row.

    The same account by the same credential, at the same address: that stands in links.
    """
    match = request.resolver_match
    place = (
        None if match is None else (match.namespace, _without_pk(match.kwargs)),
        request.scheme,
        request.get_host(),
        get_script_prefix(),
    )
    auth: Any = request.auth
    credential = (type(auth), auth.pk) if isinstance(auth, Model) else None
    return account_of(request), credential, place


def renew(request: Request) -> None:
    """Read anew who asks: rights are kept on the object that a request began with.

    What a site keeps outside of rows, such as a signed token, counts as it did when the
    request came.

    Raises:
        AuthenticationFailed: The account or its credential is gone, or closed.
    """
    auth: Any = request.auth
    if isinstance(auth, AgentClient):
        rows = AgentClient.objects.using(alias()).filter(revoked_at__isnull=True)
        request.auth = _again(rows.filter(pk=auth.pk).first())
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


def _without_pk(kwargs: dict[str, Any]) -> Hashable:
    return tuple(sorted((k, str(v)) for k, v in kwargs.items() if k != "pk"))

"""Checks that no request's transaction is wrapped around our views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import connections, router
from django.urls import URLPattern, URLResolver, get_resolver

PACKAGE = "hitl_approvals."


@register(Tags.urls)
def check_views(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Warn where ATOMIC_REQUESTS would take back decisions that were answered."""
    from hitl_approvals.models import AgentTurn

    alias = router.db_for_write(AgentTurn)
    if not connections[alias].settings_dict.get("ATOMIC_REQUESTS"):
        return []
    if not getattr(settings, "ROOT_URLCONF", None):
        return []
    wrapped = sorted(
        {
            _name(view)
            for view in _views(get_resolver().url_patterns)
            if _is_ours(view)
            and alias not in getattr(view, "_non_atomic_requests", set())
        }
    )
    if not wrapped:
        return []
    return [
        CheckWarning(
            f"ATOMIC_REQUESTS wraps {', '.join(wrapped)} in a transaction.",
            hint=(
                "A decision is recorded when its own transaction commits; within a "
                "request's it can be taken back after it was answered. Decorate the "
                f"view with transaction.non_atomic_requests(using={alias!r})."
            ),
            id="hitl_approvals.W003",
        )
    ]


def _views(
    patterns: Sequence[URLPattern | URLResolver],
) -> Iterator[Callable[..., Any]]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _views(pattern.url_patterns)
        elif pattern.callback is not None:
            yield pattern.callback


def _is_ours(view: Callable[..., Any]) -> bool:
    return _name(view).startswith(PACKAGE)


def _name(view: Callable[..., Any]) -> str:
    """Return the dotted name of what answers: a class behind `as_view()`, or the view."""
    target: Any = (
        getattr(view, "cls", None) or getattr(view, "view_class", None) or view
    )
    name = getattr(target, "__qualname__", type(target).__qualname__)
    return f"{target.__module__}.{name}"

"""Addresses that are served as the server is: on an event loop, or in a thread.

An async view costs several milliseconds a request under WSGI, because each gets an event
loop and a thread of its own; a sync view under ASGI costs a thread while it waits.
"""

from __future__ import annotations

import asyncio
from typing import Any

from django.urls import ResolverMatch, URLPattern
from rest_framework.routers import SimpleRouter


class WaitingPattern(URLPattern):
    """The address of a view that `waits` has made."""

    def resolve(self, path: str) -> ResolverMatch | None:
        """Return the view that suits who asks: Django's ASGI handler is on a loop."""
        match = super().resolve(path)
        if match is not None and _on_an_event_loop():
            match.func = self.callback.attending  # type: ignore[attr-defined]
        return match


class WaitingRouter(SimpleRouter):
    """Gives each view that may wait such an address."""

    def get_urls(self) -> list[Any]:
        """Return the addresses of all views."""
        return [_served(one) for one in super().get_urls()]


def _served(one: Any) -> Any:
    if not hasattr(one.callback, "attending"):
        return one
    return WaitingPattern(one.pattern, one.callback, one.default_args, one.name)


def _on_an_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True

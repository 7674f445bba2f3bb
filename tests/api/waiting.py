"""Requests that wait, each in a thread of its own, and what they are given."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections
from django.urls import set_script_prefix
from rest_framework.test import APIClient

from hitl_approvals.api.waiting.watcher import watcher

LONG = 20
"""Seconds within which everything has happened; nothing waits them out."""


class Asking:
    """A GET under way."""

    def __init__(
        self, http: APIClient, url: str, *, prefix: str = "/", **options: Any
    ) -> None:
        self._http, self._url, self._options = http, url, options
        self._prefix = prefix
        self._response: Any = None
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        # As a server does; the test's client leaves it as it is.
        set_script_prefix(self._prefix)
        try:
            self._response = self._http.get(self._url, **self._options)
        finally:
            connections.close_all()

    def answer(self) -> Any:
        """Return the response, once it is there."""
        self._thread.join(LONG)
        assert not self._thread.is_alive(), "no answer"
        return self._response


def asking(http: APIClient, url: str, *, beside: int = 0, **options: Any) -> Asking:
    """Ask, and return once that request waits."""
    begun = Asking(http, url, **options)
    until_held(beside + 1)
    return begun


def until_held(count: int) -> None:
    """Return once so many requests wait."""
    until = time.monotonic() + LONG
    while len(watcher) != count:
        assert time.monotonic() < until, f"{len(watcher)} wait, not {count}"
        time.sleep(0.002)


def until_looked(looks: int) -> None:
    """Return once the watcher has looked so often."""
    until = time.monotonic() + LONG
    while watcher.looks < looks:
        assert time.monotonic() < until, "nobody looks"
        time.sleep(0.002)


@pytest.fixture
def nobody_waits() -> Iterator[None]:
    """Begin and end without anybody who waits, and without the thread that looks."""
    until_held(0)
    yield
    until_held(0)
    assert watcher.join(LONG)

"""Chromium, driven by Playwright. A missing browser is a failure, never a skip."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, Page, sync_playwright

from tests.admin.conftest import (  # noqa: F401  pytest finds them by name
    boss,
    login,
    other_reviewer,
    person,
    reviewer,
    settler,
    stranger,
    viewer,
)
from tests.browser.processes import web

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

Browse = Callable[..., AbstractContextManager[Page]]
OpenAs = Callable[..., Page]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser; every test has windows of its own, which share nothing."""
    path = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
    if not path.exists():
        pytest.fail(f"No Chromium at {path}; install it, or name one in $CHROMIUM.")
    # Playwright keeps a loop of its own in this thread, which Django takes for ours.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(path), headless=True, args=ARGUMENTS
        )
        yield browser
        browser.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def browse(chromium: Browser) -> Browse:
    """Open a window of its own."""

    @contextmanager
    def opened(**options: Any) -> Iterator[Page]:
        context = chromium.new_context(**options)
        try:
            page = context.new_page()
            page.set_default_timeout(15_000)
            yield page
        finally:
            context.close()

    return opened


@pytest.fixture(scope="session")
def site(django_db_setup: None) -> Iterator[str]:
    """The address of a real server, which answers under the strict policy."""
    with web() as address:
        yield address


@pytest.fixture
def open_as(chromium: Browser, site: str, transactional_db: None) -> Iterator[OpenAs]:
    """Open a window in which somebody is logged in.

    What a page did wrong there fails the test: an error of a script, and whatever the
    Content-Security-Policy kept from running.
    """
    contexts: list[Any] = []
    wrong: list[str] = []

    def opened(user: User | None, path: str = "", **options: Any) -> Page:
        base = options.pop("base", site)
        context = chromium.new_context(base_url=base, **options)
        contexts.append(context)
        if user is not None:
            context.add_cookies([{"url": base, **session_of(user)}])
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
        page.on("console", lambda said: _note(said, wrong))
        page.goto(path or "/admin/hitl_approvals/pendinginterrupt/")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def session_of(user: User) -> dict[str, str]:
    """Return the cookie of a new session."""
    client = Client()
    client.force_login(user)
    morsel = client.cookies[settings.SESSION_COOKIE_NAME]
    return {"name": morsel.key, "value": morsel.value}


def _note(said: Any, wrong: list[str]) -> None:
    if "Content Security Policy" in said.text or "Content-Security-Policy" in said.text:
        wrong.append(said.text)

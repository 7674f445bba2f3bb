"""Chromium, driven by Playwright. A missing browser is a failure, never a skip."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

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


@pytest.fixture
def browse() -> Browse:
    """Open a page in a browser of its own; the database rests until it is closed."""
    path = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
    if not path.exists():
        pytest.fail(f"No Chromium at {path}; install it, or name one in $CHROMIUM.")

    @contextmanager
    def opened(**options: Any) -> Iterator[Page]:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=str(path), headless=True, args=ARGUMENTS
            )
            try:
                page = browser.new_context(**options).new_page()
                page.set_default_timeout(15_000)
                yield page
            finally:
                browser.close()

    return opened

"""Makes the picture of the review queue that the README shows.

    python docs/screenshot.py

Seeds the example site in a temporary folder, lets its agent ask for a few things, and
photographs the admin in the Chromium that is installed. Changes nothing but the picture.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "queue.png"
WIDTH, HEIGHT = 1280, 640
PROMPTS = {
    "Order A-1003 never came. Refund 1280 EUR.": 3 * 3600,
    "Order A-1002 arrived broken. Refund 240.00 EUR and write to the customer.": 1500,
    "The wrong color was sent for order A-1002. Refund 120 EUR.": 240,
}
"""What customers complain about, and how many seconds ago."""


def main() -> None:
    """Make the picture."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["EXAMPLE_DATA"] = folder
        os.environ["DJANGO_SETTINGS_MODULE"] = "example_project.settings"
        _seed()
        with _web() as address:
            _photograph(address)


def _seed() -> None:
    import django

    django.setup()
    from datetime import timedelta

    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.utils import timezone

    from example_project.demo.people import seed_people
    from example_project.shop.seeds import seed_orders
    from hitl_approvals import start_turn
    from hitl_approvals.models import PendingInterrupt

    call_command("migrate", verbosity=0)
    seed_orders()
    seed_people()
    sam = get_user_model().objects.get(username="sam")
    for prompt, age in PROMPTS.items():
        turn = start_turn("support", prompt, requested_by=sam, run=True)
        asked = timezone.now() - timedelta(seconds=age)
        PendingInterrupt.objects.filter(turn=turn).update(requested_at=asked)


@contextmanager
def _web() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [sys.executable, "-m", "django", "runserver", "--noreload", place]
    with subprocess.Popen(  # noqa: S603  the command is our own
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            yield f"http://{place}"
        finally:
            server.terminate()


def _photograph(address: str) -> None:
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    browser_path = next(filter(None, map(shutil.which, names)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        _open(
            page, f"{address}/admin/login/?next=/admin/hitl_approvals/pendinginterrupt/"
        )
        page.fill("#id_username", "rita")
        page.fill("#id_password", "rita")
        page.click("input[type=submit]")
        page.wait_for_load_state("networkidle")
        page.screenshot(path=PICTURE)
        browser.close()


def _open(page: Any, url: str) -> None:
    """Open a page, however long the server takes to start."""
    from playwright.sync_api import Error

    until = time.monotonic() + 30
    while True:
        try:
            page.goto(url)
        except Error:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    main()

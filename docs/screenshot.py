"""Makes the pictures of the review desk that the documentation shows.

    python docs/screenshot.py

Seeds the example site in a temporary folder, lets its agent ask for a few things and
people decide on others, and photographs the admin in the Chromium that is installed: each
page light, dark, and on a phone. Changes nothing but the pictures.
"""

from __future__ import annotations

import io
import os
import random
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
PICTURES = ROOT / "docs" / "images"
COLORS = 96
MOST_BYTES = 100_000
WINDOWS: dict[str, dict[str, Any]] = {
    "": {"viewport": {"width": 1280, "height": 800}},
    "-dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "-phone": {"viewport": {"width": 390, "height": 844}},
}
PROMPTS = {
    "Order A-1003 never came. Refund 1280 EUR.": 3 * 3600,
    "Order A-1002 arrived broken. Refund 240.00 EUR and write to the customer.": 1500,
    "The wrong color was sent for order A-1002. Refund 120 EUR.": 240,
}
"""What customers complain about, and how many seconds ago."""
DOUBTFUL = "Order A-1001 is late. Refund 12 EUR, and tell the customer."
SIDEBAR = "localStorage.setItem('django.admin.navSidebarIsOpen', 'false')"
LIST = "/admin/hitl_approvals/pendinginterrupt/"


def main() -> None:
    """Make the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["EXAMPLE_DATA"] = folder
        os.environ["DJANGO_SETTINGS_MODULE"] = "example_project.settings"
        rows = _seed()
        with _web() as address:
            _photograph(address, rows)


def _seed() -> dict[str, str]:
    """Fill the desk; return the rows that have pictures of their own."""
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
    people = get_user_model().objects
    sam, rita = people.get(username="sam"), people.get(username="rita")
    _past(sam, rita)
    doubt = _doubt(sam, rita)
    for prompt, age in PROMPTS.items():
        turn = start_turn("support", prompt, requested_by=sam, run=True)
        asked = timezone.now() - timedelta(seconds=age)
        PendingInterrupt.objects.filter(turn=turn).update(requested_at=asked)
    broken = PendingInterrupt.objects.get(tool_name="email_customer", status="pending")
    call = broken.turn.interrupts.get(tool_name="issue_refund")
    return {"call": str(call.pk), "doubt": doubt}


def _past(sam: Any, rita: Any) -> None:
    """Let people have decided for three weeks."""
    from datetime import timedelta

    from django.utils import timezone

    from hitl_approvals import Approve, Edit, Reject, run_turn, services, start_turn
    from hitl_approvals.models import PendingInterrupt

    chance = random.Random(5)  # noqa: S311  the same picture every time
    for number in range(60):
        prompt = f"Order A-1003 has a scratch, case {number}. Refund {51 + number} EUR."
        turn = start_turn("support", prompt, requested_by=sam, run=True)
        row = turn.interrupts.get()
        kind = chance.choices(["approve", "edit", "reject"], [6, 2, 3])[0]
        if kind == "edit":
            args = {"order": "A-1003", "amount": "20.00", "reason": "A scratch"}
            decision: Any = Edit(args)
        else:
            decision = Approve() if kind == "approve" else Reject("No photograph.")
        services.decide(row.pk, decision, by=rita, via="admin")
        run_turn(turn.pk)
        ago = timedelta(days=chance.randrange(14), hours=chance.randrange(8))
        done = timezone.now() - ago
        asked = done - timedelta(seconds=chance.randrange(60, 7000))
        PendingInterrupt.objects.filter(pk=row.pk).update(
            requested_at=asked, decided_at=done
        )


def _doubt(sam: Any, rita: Any) -> str:
    """Let the line to the mail server break in the middle of a call."""
    from unittest import mock

    from hitl_approvals import Approve, run_turn, services, start_turn
    from hitl_approvals.models import DbNow

    turn = start_turn("support", DOUBTFUL, requested_by=sam, run=True)
    row = turn.interrupts.get(tool_name="email_customer")
    services.decide(row.pk, Approve(), by=rita, via="admin")
    gone = mock.patch(
        "example_project.shop.agents._append_to_outbox", side_effect=OSError
    )
    with gone:
        run_turn(turn.pk)
    row.steps.update(hard_deadline=DbNow())
    return str(row.pk)


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


def _photograph(address: str, rows: dict[str, str]) -> None:
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    browser_path = next(filter(None, map(shutil.which, names)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"]
        )
        for ending, window in WINDOWS.items():
            page = browser.new_context(base_url=address, **window).new_page()
            page.set_default_timeout(10_000)
            page.add_init_script(SIDEBAR)
            _open(page, f"/admin/login/?next={LIST}")
            page.fill("#id_username", "rita")
            page.fill("#id_password", "rita")
            page.click("input[type=submit]")
            for name, show in SHOWS.items():
                show(page, rows)
                page.wait_for_load_state("networkidle")
                _keep(page.screenshot(), PICTURES / f"{name}{ending}.png")
        browser.close()


def _queue(page: Any, rows: dict[str, str]) -> None:
    page.goto(LIST)


def _detail(page: Any, rows: dict[str, str]) -> None:
    page.goto(f"{LIST}{rows['call']}/change/")


def _edit(page: Any, rows: dict[str, str]) -> None:
    page.goto(f"{LIST}{rows['call']}/edit/")


def _diff(page: Any, rows: dict[str, str]) -> None:
    _edit(page, rows)
    page.locator("input[inputmode=decimal]").first.fill("210.00")
    page.locator(".desk-foot button[value=review]").click()
    page.wait_for_selector(".desk-diff ins")


def _bulk(page: Any, rows: dict[str, str]) -> None:
    page.goto(LIST)
    for tick in page.locator("input[name=chosen]").all():
        tick.check()
    page.locator("#bulk button[value=approve]").click()
    page.wait_for_selector(".desk-batch")


def _in_doubt(page: Any, rows: dict[str, str]) -> None:
    page.goto(f"{LIST}{rows['doubt']}/change/")


def _numbers(page: Any, rows: dict[str, str]) -> None:
    page.goto(f"{LIST}numbers/")


SHOWS = {
    "queue": _queue,
    "detail": _detail,
    "edit": _edit,
    "diff": _diff,
    "bulk": _bulk,
    "in-doubt": _in_doubt,
    "numbers": _numbers,
}


def _keep(picture: bytes, path: Path) -> None:
    """Save a picture with few colors, so that the repository stays small."""
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size > MOST_BYTES:
        raise SystemExit(f"{path.name} is larger than {MOST_BYTES} bytes.")


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

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, Route

from hitl_approvals.engine import run_turn
from hitl_approvals.models import PendingInterrupt
from tests.admin import agents_for_admin
from tests.admin.scenes import AMOUNT, LIST, key_of, refund
from tests.browser.conftest import Browse

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def refunded(transactional_db: None) -> PendingInterrupt:
    agents_for_admin.RAN.clear()
    User.objects.create_superuser("priya", password="secret")
    return refund(note="Broken\u202e on arrival")


def log_in(page: Page, site: Any) -> None:
    page.goto(f"{site.url}{LIST}")
    page.fill("#id_username", "priya")
    page.fill("#id_password", "secret")
    page.click("input[type=submit]")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_reviewer_opens_the_queue_and_approves_a_refund(
    live_server: Any, browse: Browse, refunded: PendingInterrupt, scripts: bool
) -> None:
    with browse(java_script_enabled=scripts) as page:
        log_in(page, live_server)
        page.click("a.desk-tool:has-text('desk_refund')")
        promise = page.inner_text(".desk-panel .desk-promise")
        page.click(".desk-panel button:has-text('Approve and run')")
        page.wait_for_url("**/pendinginterrupt/?done=*")
        note = page.inner_text(".desk-note")

    assert promise == "Runs desk_refund once with exactly these arguments."
    assert "You approved desk_refund" in note
    refunded.refresh_from_db()
    assert (refunded.status, refunded.decision) == ("decided", "approve")
    run_turn(refunded.turn_id)
    assert [name for name, _ in agents_for_admin.RAN] == ["desk_refund"]


def test_a_form_that_nobody_touched_is_an_approval_in_a_real_browser(
    live_server: Any, browse: Browse, refunded: PendingInterrupt
) -> None:
    with browse() as page:
        log_in(page, live_server)
        page.click("a.desk-tool:has-text('desk_refund')")
        page.click("text=Edit, then approve…")
        page.click(".desk-foot button:has-text('See what changes')")
        page.wait_for_selector("text=You changed nothing")
        page.click("button:has-text('Approve and run')")
        page.wait_for_url("**/pendinginterrupt/?done=*")

    refunded.refresh_from_db()
    assert refunded.decision == "approve"


def test_enter_in_a_field_only_goes_to_the_next_page(
    live_server: Any, browse: Browse, refunded: PendingInterrupt
) -> None:
    field = f"#id_{key_of(refunded, 'amount')}"
    with browse() as page:
        log_in(page, live_server)
        page.click("a.desk-tool:has-text('desk_refund')")
        page.click("text=Edit, then approve…")
        page.fill(field, "210.00")
        page.press(field, "Enter")
        page.wait_for_selector("text=Step 2 of 2: 1 of 8 arguments differ.")
        page.click("button:has-text('Change more')")
        page.wait_for_selector("text=Put back")
        page.fill(field, AMOUNT)
        page.press(field, "Enter")
        page.wait_for_selector("text=You changed nothing")

    refunded.refresh_from_db()
    assert refunded.status == "pending"


def test_both_decisions_stand_on_the_first_screen(
    live_server: Any, browse: Browse, refunded: PendingInterrupt
) -> None:
    with browse(viewport={"width": 1280, "height": 800}) as page:
        log_in(page, live_server)
        page.click("a.desk-tool:has-text('desk_refund')")
        bottoms = {
            name: _bottom(page, f".desk-panel button[value={name}]")
            for name in ("approve", "reject")
        }
        page.set_viewport_size({"width": 390, "height": 844})
        width = page.evaluate("document.documentElement.scrollWidth")
        docked = _bottom(page, ".desk-dock button")

    assert max(bottoms.values()) <= 800
    assert width <= 390
    assert docked <= 844


def test_no_page_needs_more_than_the_strictest_content_policy(
    live_server: Any, browse: Browse, refunded: PendingInterrupt
) -> None:
    policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'"
    refused: list[str] = []

    def harden(route: Route) -> None:
        response = route.fetch(max_redirects=0)
        headers = {**response.headers, "content-security-policy": policy}
        route.fulfill(response=response, headers=headers)

    with browse() as page:
        page.on("console", lambda message: refused.append(message.text))
        page.on("pageerror", lambda error: refused.append(str(error)))
        page.route(f"{live_server.url}/admin/**", harden)
        log_in(page, live_server)
        page.click("a.desk-tool:has-text('desk_refund')")
        page.click("text=Edit, then approve…")
        page.click(".desk-foot button:has-text('See what changes')")
        page.wait_for_selector("text=You changed nothing")
        before = [text for text in refused if "Content Security Policy" in text]
        with page.expect_console_message(lambda one: "Content Security" in one.text):
            page.evaluate(
                "document.head.append(document.createElement('style'));"
                "document.querySelector('head style:last-child').textContent = 'a{}'"
            )

    assert before == []


def _bottom(page: Page, selector: str) -> float:
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return box["y"] + box["height"]

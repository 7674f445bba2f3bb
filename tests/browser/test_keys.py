"""The keys of the desk: where they lead, when they rest, and that none of them decides."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from hitl_approvals.models import PendingInterrupt
from tests.admin.scenes import LIST, refund, start, url
from tests.browser.conftest import OpenAs

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def focused(page: Page) -> str:
    """Return what has the focus, in a few words."""
    told: str = page.evaluate(
        "(document.activeElement.innerText || document.activeElement.id || '').trim()"
    )
    return told


def statuses() -> set[str]:
    return set(PendingInterrupt.objects.values_list("status", flat=True))


def test_a_moves_and_enter_approves(open_as: OpenAs, reviewer: User) -> None:
    row = refund()
    page = open_as(reviewer, url(row))

    page.keyboard.press("a")
    assert focused(page).startswith("Approve and run")
    page.keyboard.press("a")
    assert statuses() == {"pending"}
    page.keyboard.press("Enter")
    page.wait_for_url("**/?done=*")

    row.refresh_from_db()
    assert row.decision == "approve"


def test_r_moves_and_ctrl_enter_rejects(open_as: OpenAs, reviewer: User) -> None:
    row = refund()
    page = open_as(reviewer, url(row))

    page.keyboard.press("r")
    assert focused(page) == "reason"
    page.keyboard.type("are a e s j k u?")
    assert page.input_value("#reason") == "are a e s j k u?"
    assert page.url.endswith("/change/")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/?done=*")

    row.refresh_from_db()
    assert (row.decision, row.reason) == ("reject", "are a e s j k u?")


def test_escape_leaves_the_field(open_as: OpenAs, reviewer: User) -> None:
    page = open_as(reviewer, url(refund()))
    page.keyboard.press("r")
    page.keyboard.press("Escape")

    assert page.evaluate("document.activeElement === document.body")


def test_no_single_key_decides(open_as: OpenAs, reviewer: User) -> None:
    row = refund()
    context = open_as(reviewer, url(row)).context
    # A key may lead to another page: each has a window of its own to do so.
    for key in [*"aersjkuxc/?", "Enter", "Escape", "Control+Enter"]:
        page = context.new_page()
        page.goto(url(row))
        page.wait_for_selector("kbd[data-desk-kbd]")
        page.keyboard.press(key)
    for page in context.pages:
        page.wait_for_load_state("networkidle")

    assert statuses() == {"pending"}


def test_next_previous_skip_edit_and_queue(open_as: OpenAs, reviewer: User) -> None:
    rows = [refund(order_id=f"A-{number}") for number in range(3)]
    page = open_as(reviewer, url(rows[0]))

    page.keyboard.press("j")
    page.wait_for_url(f"**{url(rows[1])}")
    page.keyboard.press("s")
    page.wait_for_url(f"**{url(rows[2])}*")
    page.keyboard.press("k")
    page.wait_for_url(f"**{url(rows[1])}")
    page.keyboard.press("e")
    page.wait_for_url(f"**{url(rows[1], 'edit')}")
    page.keyboard.press("u")
    page.wait_for_url(f"**{LIST}")
    assert statuses() == {"pending"}


def test_rows_are_walked_and_opened(open_as: OpenAs, reviewer: User) -> None:
    rows = [refund(order_id=f"A-{number}") for number in range(3)]
    page = open_as(reviewer)

    for key in "jjkjj":
        page.keyboard.press(key)
    assert page.locator("tr.desk-here").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{url(rows[2])}")


def test_slash_searches(open_as: OpenAs, reviewer: User) -> None:
    refund()
    page = open_as(reviewer)
    page.keyboard.press("/")
    page.keyboard.type("j/refund")

    assert page.input_value("#q") == "j/refund"


def test_keys_with_a_modifier_are_left_alone(open_as: OpenAs, reviewer: User) -> None:
    page = open_as(reviewer, url(refund()))
    page.wait_for_selector("kbd")
    for key in ("Control+a", "Alt+e", "Meta+r"):
        page.keyboard.press(key)

    assert focused(page) != "reason"
    assert not focused(page).startswith("Approve")
    assert page.url.endswith("/change/")


def test_the_sheet_opens_closes_and_gives_the_focus_back(
    open_as: OpenAs, reviewer: User
) -> None:
    page = open_as(reviewer, url(refund()))
    page.keyboard.press("a")
    page.keyboard.press("?")
    sheet = page.locator("dialog#desk-keys")
    expect(sheet).to_be_visible()
    expect(sheet).to_contain_text("No single key decides anything")

    page.keyboard.press("e")
    assert page.url.endswith("/change/")
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    assert focused(page).startswith("Approve and run")
    assert statuses() == {"pending"}


def test_keys_can_be_switched_off_and_stay_off(open_as: OpenAs, reviewer: User) -> None:
    row = refund()
    page = open_as(reviewer, url(row))
    expect(page.locator("button[value=approve] kbd").first).to_be_visible()
    page.keyboard.press("?")
    page.locator("dialog [data-desk-switch] input").uncheck()
    page.keyboard.press("Escape")

    assert page.locator("kbd[data-desk-kbd]").count() == 0
    assert page.locator("[aria-keyshortcuts]").count() == 0
    page.reload()
    page.keyboard.press("a")
    assert focused(page) == "" or not focused(page).startswith("Approve")
    assert page.locator("kbd[data-desk-kbd]").count() == 0

    page.goto(f"{LIST}keys/")
    page.locator("[data-desk-switch] input").check()
    page.goto(url(row))
    page.keyboard.press("a")
    assert focused(page).startswith("Approve and run")


def test_shortcuts_are_told_to_assistive_technology(
    open_as: OpenAs, reviewer: User
) -> None:
    page = open_as(reviewer, url(refund()))
    told = page.locator("[aria-keyshortcuts]").evaluate_all(
        "all => all.map(one => one.getAttribute('aria-keyshortcuts'))"
    )

    assert set(told) >= set("aeru")


def test_no_hint_is_shown_on_a_phone(open_as: OpenAs, reviewer: User) -> None:
    page = open_as(reviewer, url(refund()), viewport={"width": 390, "height": 844})
    page.wait_for_selector("kbd", state="attached")

    for hint in page.locator("kbd[data-desk-kbd]").all():
        expect(hint).to_be_hidden()


def test_without_scripts_no_hint_and_the_page_of_keys(
    open_as: OpenAs, reviewer: User
) -> None:
    page = open_as(reviewer, java_script_enabled=False)
    assert page.locator("[data-desk-kbd]").count() == 0

    page.click("a[data-desk-sheet]")
    page.wait_for_url("**/keys/")
    expect(page.locator("h1")).to_have_text("Keys")
    expect(page.locator("[data-desk-switch]")).to_be_hidden()


def test_tab_goes_through_a_call_in_the_order_of_its_source(
    open_as: OpenAs, reviewer: User
) -> None:
    start(
        (
            "desk_refund",
            {"order_id": "A", "amount": "1.00", "currency": "EUR", "items": []},
        ),
        messages=[{"role": "user", "content": "x"}] * 9,
    )
    page = open_as(reviewer)
    page.click("a.desk-tool")
    page.locator(".desk h1").evaluate("one => { one.tabIndex = -1; one.focus(); }")
    seen = []
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "document.activeElement.value || document.activeElement.id || document.activeElement.tagName"
            )
        )
    wanted = ["approve", "reason", "reject", "SUMMARY"]

    assert sorted(wanted, key=seen.index) == wanted


def test_what_arrived_is_counted_and_rests_while_nobody_looks(
    open_as: OpenAs, reviewer: User
) -> None:
    page = open_as(reviewer)
    page.clock.install()
    page.reload()
    told = page.locator("[data-desk-arrived]")
    asked: list[str] = []
    page.on(
        "request", lambda one: asked.append(one.url) if "arrived" in one.url else None
    )
    assert (told.get_attribute("role"), told.get_attribute("aria-live")) == (
        "status",
        "polite",
    )

    refund()
    page.clock.fast_forward(31_000)
    expect(told).to_contain_text("1 more arrived since you opened this page.")
    refund(order_id="A-2")
    page.clock.fast_forward(31_000)
    expect(told).to_contain_text("2 more arrived")
    assert len(asked) == 2

    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'));"
    )
    page.clock.fast_forward(300_000)
    assert len(asked) == 2
    with page.expect_request("**/arrived/**"):
        page.evaluate(
            "Object.defineProperty(document, 'hidden', {value: false});"
            "document.dispatchEvent(new Event('visibilitychange'));"
        )
        page.clock.run_for(1)

    told.locator("a").click()
    expect(page.locator("tr[data-desk-row]")).to_have_count(2)

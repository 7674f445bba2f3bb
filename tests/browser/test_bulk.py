"""Many calls at once, and a turn that stopped, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from hitl_approvals import services
from hitl_approvals.decisions import Reject
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from hitl_approvals.testing import run_owed
from tests.admin.scenes import LIST, ask, call, charge_in_doubt, refund, start, url
from tests.admin.test_stopped import diverged, half_done
from tests.browser.conftest import OpenAs
from tests.browser.test_axe import assert_nothing_serious

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SCRIPTS = pytest.mark.parametrize(
    "scripts", [True, False], ids=["scripts", "no scripts"]
)
APPROVE = "button:has-text('Approve ticked…')"
SEND = "button:has-text('Approve the ticked calls')"


def tick(page: Page, *rows: PendingInterrupt) -> None:
    for row in rows:
        page.check(f"input[name=chosen][value='{row.pk}']")


@SCRIPTS
def test_ticked_rows_are_read_and_approved_and_followed(
    open_as: OpenAs, reviewer: User, other_reviewer: User, scripts: bool
) -> None:
    rows = [refund(), refund(order_id="A-2"), call("desk_hurry", {"service": "shop"})]
    charge_in_doubt()
    page = open_as(reviewer, java_script_enabled=scripts)
    tick(page, *rows)
    page.click(APPROVE)
    expect(page.locator("h1")).to_have_text("Approve 3 calls?")
    services.decide(rows[1].pk, Reject("mine"), by=other_reviewer, via="admin")
    page.click(SEND)

    expect(page.locator("h1")).to_have_text("2 of 3 calls approved, 1 not")
    expect(page.locator(".desk-outcome")).to_contain_text("Rejected by priya.nair")
    run_owed()
    page.reload()
    expect(page.locator(".desk-outcome tbody tr").first).to_contain_text("ran once")


@SCRIPTS
def test_rejecting_a_whole_turn_keeps_the_ticks_until_there_is_a_reason(
    open_as: OpenAs, reviewer: User, scripts: bool
) -> None:
    turn = start(*[("desk_hurry", {"service": name}) for name in "abc"])
    page = open_as(reviewer, java_script_enabled=scripts)
    page.check(f"input[name=turn][value='{turn.pk}']")
    page.click("button:has-text('Reject ticked…')")
    page.uncheck("input[name=row] >> nth=1")
    page.click("button:has-text('Reject the ticked ones, do not run')")
    expect(page.locator("#faults")).to_contain_text("Say why")
    expect(page.locator("input[name=row]:checked")).to_have_count(2)
    page.fill("#reason", "Not today")
    page.click("button:has-text('Reject the ticked ones, do not run')")

    expect(page.locator("h1")).to_have_text("2 of 2 requests rejected")
    assert turn.interrupts.filter(status="pending").count() == 1


def test_a_double_click_and_the_back_button_decide_nothing_twice(
    open_as: OpenAs, reviewer: User
) -> None:
    rows = [refund(), refund()]
    page = open_as(reviewer)
    tick(page, *rows)
    page.click(APPROVE)
    page.dblclick(SEND)
    expect(page.locator("h1")).to_have_text("2 of 2 calls approved")
    page.go_back()
    page.wait_for_load_state()
    if page.locator(SEND).count():
        page.click(SEND)
        expect(page.locator("h1")).to_contain_text("2 of 2 calls approved")

    assert InterruptEvent.objects.filter(type="approved").count() == 2


@SCRIPTS
def test_a_stopped_turn_starts_over_after_a_look(
    open_as: OpenAs, boss: User, scripts: bool
) -> None:
    turn = half_done()
    page = open_as(boss, url(turn, model="agentturn"), java_script_enabled=scripts)
    page.fill("#input", "Something <b>else</b>")
    page.click("button:has-text('Start over')")
    expect(page.locator("#faults")).to_contain_text("Look at what ran first")
    expect(page.locator("#input")).to_have_value("Something <b>else</b>")
    page.check("#looked")
    page.click("button:has-text('Start over')")
    expect(page.locator("body")).to_contain_text("The turn starts from its beginning.")

    assert AgentTurn.objects.get(pk=turn.pk).input == "Something <b>else</b>"


def approving(page: Page) -> None:
    rows = [refund(note="Broken\u202e on arrival"), refund(), charge_in_doubt()]
    rows += [ask("Which?"), call("desk_anything", {"text": "x" * 3000, "data": [1]})]
    page.goto(f"{LIST}bulk/?do=approve&" + _chosen(rows))


def rejecting(page: Page) -> None:
    page.goto(f"{LIST}bulk/?do=reject&" + _chosen([refund(), ask("Which?")]))
    page.click("button:has-text('Reject the ticked ones')")
    page.wait_for_selector("#faults")


def told(page: Page) -> None:
    rows = [refund(), refund(), refund()]
    page.goto(f"{LIST}bulk/?do=approve&" + _chosen(rows))
    services.decide(rows[0].pk, Reject("No <b>"), by=None, via="api")
    page.uncheck("input[name=row] >> nth=2")
    page.click(SEND)
    page.wait_for_selector(".desk-outcome")


def stopped(page: Page) -> None:
    page.goto(url(half_done(), model="agentturn"))


def off_course(page: Page) -> None:
    row = diverged()
    page.goto(url(row.turn, model="agentturn"))
    page.fill("#input", "{")
    page.check("input[name=as][value=json]")
    page.click("button:has-text('Start over')")
    page.wait_for_selector("#faults")


def _chosen(rows: list[PendingInterrupt]) -> str:
    return "&".join(f"chosen={row.pk}" for row in rows)


PAGES: dict[str, Callable[[Page], None]] = {
    "approve many": approving,
    "reject many": rejecting,
    "outcome": told,
    "stopped": stopped,
    "off course": off_course,
}


@pytest.mark.parametrize("show", PAGES.values(), ids=PAGES)
def test_nothing_serious(
    open_as: OpenAs, boss: User, show: Callable[[Page], None]
) -> None:
    page = open_as(boss)
    show(page)
    assert_nothing_serious(page)

"""The acceptance run: somebody new clears a queue of forty by keyboard alone.

Recorded as a trace, `.artifacts/browser/forty.zip`; `playwright show-trace` plays it.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from hitl_approvals.models import AgentTurn, PendingInterrupt
from tests.admin.scenes import ask, call, charge_in_doubt, refund, start, url
from tests.browser.conftest import OpenAs
from tests.browser.processes import worker
from tests.workspace import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TRACE = ROOT / ".artifacts" / "browser" / "forty.zip"


def focus(page: Page, selector: str) -> None:
    """Press Tab until something has the focus."""
    for _ in range(120):
        if page.evaluate("(s) => document.activeElement.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {selector} on {page.url}")


def go(page: Page, key: str) -> None:
    """Press a key that leads to another page, and wait until that is loaded."""
    with page.expect_navigation():
        page.keyboard.press(key)


def queue_of_forty() -> dict[str, str]:
    """Fill the queue; return what is meant to become of each row."""
    planned: dict[str, str] = {}

    def plan(row: PendingInterrupt, verb: str) -> None:
        planned[str(row.pk)] = verb

    plan(charge_in_doubt(), "give up")
    for number in range(10):
        plan(refund(order_id=f"A-{number}"), "approve")
        if number % 2:
            plan(refund(order_id=f"R-{number}", note="again"), "reject")
            plan(refund(order_id=f"E-{number}", amount="300.00"), "edit")
            plan(ask(f"Which of the two for {number}?"), "respond")
            plan(call("desk_hurry", {"service": f"s-{number}"}), "approve")
    start(*[("desk_anything", {"text": f"one of {n}"}) for n in range(5)])
    start(
        *[("desk_strict", {"email": f"{n}@example.org", "count": n}) for n in range(4)]
    )
    for row in PendingInterrupt.objects.filter(tool_name="desk_anything"):
        plan(row, "bulk")
    for row in PendingInterrupt.objects.filter(tool_name="desk_strict"):
        plan(row, "approve")
    assert len(planned) == 40
    return planned


def settle(page: Page) -> None:
    page.keyboard.press("j")
    go(page, "Enter")
    focus(page, "#n3")
    page.keyboard.type("The bank does not answer the telephone.")
    page.keyboard.press("Tab")
    go(page, "Enter")
    go(page, "u")


def decide_several(page: Page) -> None:
    for _ in range(page.locator("tr[data-desk-row]").count()):
        page.keyboard.press("j")
        if page.locator("tr.desk-here", has_text="desk_anything").count():
            page.keyboard.press("x")
    assert page.locator("tr input:checked").count() == 5
    focus(page, "[form=bulk][value=approve], #bulk [value=approve]")
    go(page, "Enter")
    page.keyboard.press("a")
    go(page, "Enter")
    expect(page.locator("h1")).to_contain_text("5 calls approved")
    go(page, "u")


def decide(page: Page, verb: str) -> None:
    if verb == "approve":
        page.keyboard.press("a")
        page.keyboard.press("Enter")
    elif verb == "reject":
        page.keyboard.press("r")
        page.keyboard.type("It was refunded in June.")
        page.keyboard.press("Control+Enter")
    elif verb == "respond":
        page.keyboard.press("a")
        page.keyboard.type("The second one")
        focus(page, "button[value=respond]")
        page.keyboard.press("Enter")
    elif verb == "edit":
        go(page, "e")
        focus(page, "input[type=text][inputmode=decimal]")
        page.keyboard.press("Control+a")
        page.keyboard.type("150.00")
        go(page, "Enter")
        page.keyboard.press("a")
        page.keyboard.press("Enter")


def test_a_new_reviewer_clears_a_queue_of_forty_by_keyboard(
    open_as: OpenAs, person: Any
) -> None:
    planned = queue_of_forty()
    rights = ("decide_pendinginterrupt", "view_pendinginterrupt")
    newcomer: User = person("newcomer", *rights, "settle_pendinginterrupt")
    with worker():
        page = open_as(newcomer)
        page.context.tracing.start(screenshots=True, snapshots=False)
        settle(page)
        decide_several(page)
        page.keyboard.press("j")
        go(page, "Enter")
        left = [verb for verb in planned.values() if verb not in ("give up", "bulk")]
        for _ in range(len(left)):
            row = page.url.partition("/pendinginterrupt/")[2].partition("/")[0]
            assert page.locator("#faults").count() == 0
            with page.expect_navigation(url=f"**done={row}*"):
                decide(page, planned[row])
        expect(page.locator(".desk-empty")).to_have_text(
            "Nothing waits for a decision."
        )
        TRACE.parent.mkdir(parents=True, exist_ok=True)
        page.context.tracing.stop(path=TRACE)
        until = time.monotonic() + 30
        while AgentTurn.objects.exclude(status="completed").exists():
            assert time.monotonic() < until, "turns are left that did not complete"
            time.sleep(0.2)

    rows = PendingInterrupt.objects.all()
    became = {str(row.pk): str(row.decision or row.status) for row in rows}
    wanted = {
        "approve": "approve",
        "bulk": "approve",
        "reject": "reject",
        "respond": "respond",
        "edit": "edit",
    }
    assert {key: became[key] for key, verb in planned.items() if verb in wanted} == {
        key: wanted[verb] for key, verb in planned.items() if verb in wanted
    }
    assert Counter(row.status for row in rows) == {"resolved": 39, "cancelled": 1}
    assert url(rows[0])

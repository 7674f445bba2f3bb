"""axe-core finds nothing serious on any page of the desk, wide or narrow, light or dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page

from hitl_approvals import services
from hitl_approvals.decisions import Approve
from hitl_approvals.models import AgentTurn
from tests.admin.scenes import (
    LIST,
    REFUND,
    ask,
    call,
    charge_in_doubt,
    key_of,
    refund,
    send,
    start,
    url,
)
from tests.browser.conftest import OpenAs

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.breaks_invariants,  # one scene stops a turn by hand
]

AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
SERIOUS = ("serious", "critical")
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
WINDOWS: dict[str, tuple[Any, Any]] = {
    "light": (WIDE, "light"),
    "dark": (WIDE, "dark"),
    "phone": (NARROW, "light"),
}


def full(page: Page) -> None:
    charge_in_doubt()
    refund(note="Broken\u202e on arrival")
    start(*[("desk_hurry", {"service": name}) for name in "abc"], asked="Hurry!")
    ask("Which one?")
    page.goto(LIST)


def detail(page: Page) -> None:
    row = call(
        "desk_refund",
        {**REFUND, "note": "x\u202e" * 60},
        messages=[{"role": "user", "content": "I want it back"}] * 9,
        reason="The customer is right",
    )
    page.goto(url(row))


def editing(page: Page) -> None:
    page.goto(url(refund(), "edit"))


def faulty(page: Page) -> None:
    row = refund()
    page.goto(url(row, "edit"))
    page.fill(f"#id_{key_of(row, 'amount')}", "much")
    page.click(".desk-foot button[value=review]")
    page.wait_for_selector("#faults")


def confirming(page: Page) -> None:
    row = refund()
    page.goto(url(row, "edit"))
    page.fill(f"#id_{key_of(row, 'amount')}", "1.00")
    page.click(".desk-foot button[value=review]")
    page.wait_for_selector(".desk-diff ins")


def doubtful(page: Page) -> None:
    page.goto(url(charge_in_doubt()))


def stale(page: Page) -> None:
    row = refund()
    page.goto(url(row))
    page.fill("#reason", "No")
    page.locator("#decide input[name=revision]").evaluate("one => { one.value = '0'; }")
    page.click(".desk-panel button[value=reject]")
    page.wait_for_selector("text=What you had typed")


def question(page: Page) -> None:
    schema = {
        "type": "object",
        "properties": {"size": {"enum": ["S", "M"]}, "note": {"type": "string"}},
    }
    page.goto(url(ask("Which size?", schema)))


def turn(page: Page) -> None:
    page.goto(url(charge_in_doubt().turn, model="agentturn"))


def turns(page: Page) -> None:
    charge_in_doubt()
    page.goto("/admin/hitl_approvals/agentturn/")


def stuck(page: Page) -> None:
    stopped = charge_in_doubt().turn
    AgentTurn.objects.update(status="needs_attention", undecided=0, last_error="broke")
    page.goto(url(stopped, model="agentturn"))


def several(page: Page) -> None:
    refund()
    refund(order_id="A-2")
    charge_in_doubt()
    page.goto(LIST)
    for tick in page.locator("input[name=chosen]").all():
        tick.check()
    page.click("#bulk button[value=reject]")
    page.wait_for_selector(".desk-batch")


def outcome(page: Page) -> None:
    several(page)
    page.fill("#reason", "No")
    page.locator(".desk-panel button").click()
    page.wait_for_selector(".desk-outcome")


def numbers(page: Page) -> None:
    services.decide(refund().pk, Approve(), by=None, via="python")
    refund()
    page.goto(f"{LIST}numbers/")


def keys(page: Page) -> None:
    page.goto(f"{LIST}keys/")


def sheet(page: Page) -> None:
    refund()
    page.goto(LIST)
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")


PAGES: dict[str, Callable[[Page], None]] = {
    "list": full,
    "detail": detail,
    "edit": editing,
    "faulty edit": faulty,
    "confirm": confirming,
    "in doubt": doubtful,
    "stale": stale,
    "question": question,
    "turn": turn,
    "turns": turns,
    "needs attention": stuck,
    "bulk": several,
    "outcome": outcome,
    "numbers": numbers,
    "keys": keys,
    "sheet": sheet,
}


def assert_nothing_serious(page: Page) -> None:
    """Read a page by axe in every window, and see that it fits there."""
    # Evaluated by the debugger, which no Content-Security-Policy binds.
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for name, (size, scheme) in WINDOWS.items():
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(300)  # the admin fades the colors of links
        result = page.evaluate("axe.run('.desk', {resultTypes: ['violations']})")
        found = [
            (
                name,
                one["id"],
                one["help"],
                [node["html"][:200] for node in one["nodes"]],
            )
            for one in result["violations"]
            if one["impact"] in SERIOUS
        ]
        assert found == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("show", PAGES.values(), ids=PAGES)
def test_nothing_serious(
    open_as: OpenAs, boss: User, show: Callable[[Page], None]
) -> None:
    page = open_as(boss)
    show(page)
    assert_nothing_serious(page)


@pytest.mark.parametrize("show", [full, detail, faulty], ids=["list", "detail", "edit"])
@pytest.mark.parametrize("language", ["de", "ar"])
def test_nothing_serious_in_other_languages(
    open_as: OpenAs, boss: User, show: Callable[[Page], None], language: str
) -> None:
    page = open_as(boss, locale=language, viewport={"width": 390, "height": 844})
    show(page)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result = page.evaluate("axe.run('.desk', {resultTypes: ['violations']})")

    assert page.locator("html").get_attribute("lang") == language
    assert page.locator("html").get_attribute("dir") == (
        "rtl" if language == "ar" else "ltr"
    )
    assert [one["id"] for one in result["violations"] if one["impact"] in SERIOUS] == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_axe_finds_what_it_is_for(open_as: OpenAs, boss: User) -> None:
    refund()
    page = open_as(boss)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    page.evaluate(
        "document.querySelector('.desk').append(document.createElement('img'))"
    )
    result = page.evaluate("axe.run('.desk', {resultTypes: ['violations']})")

    assert "image-alt" in [one["id"] for one in result["violations"]]


def test_a_decided_call_has_nothing_serious(
    open_as: OpenAs, boss: User, login: Any
) -> None:
    row = refund()
    send(login(boss), row, "reject", reason="No")
    page = open_as(boss, url(row))
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result = page.evaluate("axe.run('.desk', {resultTypes: ['violations']})")

    assert [one["id"] for one in result["violations"] if one["impact"] in SERIOUS] == []

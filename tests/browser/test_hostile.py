"""Whatever an agent wrote is shown, and does nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tests.admin.scenes import LIST, ask, call, refund, url
from tests.browser.conftest import OpenAs

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

DEED = "window.hacked=1"
TEXTS = {
    "script": f"<script>{DEED}</script>",
    "image": f"<img src=x onerror={DEED}>",
    "attribute": f'" autofocus onfocus="{DEED}" x="',
    "single": f"' onmouseover='{DEED}' style='color:red",
    "template": "{{ request.user.password }}{% debug %}${7*7}",
    "link": f"javascript:{DEED}",
    "data": f"data:text/html,<script>{DEED}</script>",
    "textarea": f"</textarea><script>{DEED}</script>",
    "comment": f"--><svg onload={DEED}>",
    "form": "</form><form action=//evil.example><button>Approve and run</button>",
    "bidi": "pay \u202e001\u202c EUR \u2066x\u2069 \u200b\u0000\u0007",
    "marks": "Z" + "\u0300" * 400,
    "surrogate": "\ud800",
}


def harmless(page: Page) -> None:
    assert page.evaluate("window.hacked") is None
    assert (
        page.locator(".desk a[href^='javascript:'], .desk a[href^='data:']").count()
        == 0
    )
    assert page.locator(".desk img, .desk svg[onload], .desk iframe").count() == 0
    assert page.locator("form[action*='evil']").count() == 0


def test_text_does_nothing(open_as: OpenAs, reviewer: User) -> None:
    rows = [
        call(
            "desk_anything",
            {"text": text, "data": {text: [text]}},
            asked=text,
            reason=text,
            messages=[{"role": "user", "content": text}],
        )
        for text in TEXTS.values()
    ]
    page = open_as(reviewer, LIST)
    harmless(page)
    expect(page.locator("tr[data-desk-row]")).to_have_count(len(rows))
    for row in rows:
        page.goto(url(row))
        harmless(page)
        assert page.locator(".desk-panel button[value=approve]").count() == 1
        page.goto(url(row, "edit"))
        harmless(page)


def test_invisible_characters_are_codes(open_as: OpenAs, reviewer: User) -> None:
    row = refund(note=TEXTS["bidi"])
    page = open_as(reviewer, url(row))

    codes = page.locator(".desk-argtable .desk-code").all_inner_texts()

    assert {"U+202E", "U+202C", "U+2066", "U+2069", "U+200B"} <= set(codes)
    assert "\u202e" not in page.inner_text(".desk")


def test_a_question_does_nothing(open_as: OpenAs, reviewer: User) -> None:
    row = ask(TEXTS["script"] + TEXTS["textarea"])
    page = open_as(reviewer, url(row))

    harmless(page)
    expect(page.locator(".desk-quote").first).to_contain_text("<script>")


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    "data",
    [
        "x" * 3_000_000,
        {f"key {number}": number for number in range(10_000)},
        deep(100),
        [[]] * 500,
        2**63 + 1,
        1e-320,
    ],
    ids=["3 MB", "10,000 keys", "100 levels", "empties", "large", "small"],
)
def test_large_and_odd_values_open_and_can_be_rejected(
    open_as: OpenAs, reviewer: User, data: Any, settings: Any
) -> None:
    limits = {"MAX_PAYLOAD_BYTES": 8_000_000, "MAX_DEPTH": 128}
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, **limits}
    row = call("desk_anything", {"data": data})
    page = open_as(reviewer)
    page.set_default_timeout(30_000)
    expect(page.locator("tr[data-desk-row]")).to_have_count(1)
    page.goto(url(row))
    harmless(page)
    box = page.locator(".desk-panel button[value=reject]").bounding_box()
    assert box is not None
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.fill("#reason", "No.")
    page.click(".desk-panel button[value=reject]")
    page.wait_for_url("**/?done=*")

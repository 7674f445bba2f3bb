"""Holding a row at the desk, in a browser: keys, typed text, two people on one row."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from hitl_approvals.models import InterruptEvent
from tests.admin.scenes import LIST, refund, url
from tests.browser.conftest import OpenAs

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_c_claims_and_releases_and_keeps_what_was_typed(
    open_as: OpenAs, reviewer: User
) -> None:
    row = refund()
    page = open_as(reviewer, url(row))
    page.fill("#reason", "half a sentence")
    page.keyboard.press("Escape")

    page.keyboard.press("c")
    expect(page.get_by_text("You hold it until")).to_be_visible()

    assert page.input_value("#reason") == "half a sentence"
    row.refresh_from_db()
    assert (row.assignee, row.status) == (reviewer, "pending")
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    expect(page.get_by_text("You hold it until")).to_have_count(0)
    row.refresh_from_db()
    assert row.assignee is None


def test_two_browsers_on_one_row(
    open_as: OpenAs, reviewer: User, other_reviewer: User
) -> None:
    row = refund()
    mine, theirs = open_as(reviewer, url(row)), open_as(other_reviewer, url(row))
    mine.get_by_role("button", name="Claim").click()
    expect(mine.get_by_text("You hold it until")).to_be_visible()

    theirs.fill("#reason", "typed with care")
    theirs.get_by_role("button", name="Reject, do not run").click()

    expect(theirs.get_by_role("heading", name="holds this now")).to_be_visible()
    expect(theirs.get_by_text("typed with care")).to_be_visible()
    row.refresh_from_db()
    assert row.status == "pending"


def test_a_hidden_value_is_gone_when_the_page_is_opened_again(
    open_as: OpenAs, person: Callable[..., User]
) -> None:
    rosa = person(
        "rosa",
        "view_pendinginterrupt",
        "decide_pendinginterrupt",
        "reveal_pendinginterrupt",
    )
    row = refund()
    page = open_as(rosa, url(row))
    page.get_by_role("button", name="Reveal; this is recorded").click()
    expect(page.get_by_text("tok_8d7e6f5a4b3c")).to_be_visible()

    page.goto(page.url.replace("/reveal/", "/change/"))

    expect(page.get_by_text("tok_8d7e6f5a4b3c")).to_have_count(0)
    told = InterruptEvent.objects.filter(subject_id=row.pk, type="revealed")
    assert told.count() == 1


def test_c_in_the_list_claims_the_row_that_one_stands_on(
    open_as: OpenAs, reviewer: User
) -> None:
    first, second = refund(), refund()
    page = open_as(reviewer, LIST)

    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("c")
    expect(page.get_by_text("You hold it until")).to_be_visible()

    for row in (first, second):
        row.refresh_from_db()
    assert (first.assignee, second.assignee) == (None, reviewer)

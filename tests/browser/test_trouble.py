"""People who click twice, meet on a row, go back, or were logged out meanwhile."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from hitl_approvals.testing import run_owed
from tests.admin import agents_for_admin
from tests.admin.scenes import key_of, refund, url
from tests.browser.conftest import OpenAs

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_double_click_decides_once(open_as: OpenAs, reviewer: User) -> None:
    agents_for_admin.RAN.clear()
    row = refund()
    page = open_as(reviewer, url(row))
    page.dblclick(".desk-panel button[value=approve]")
    expect(page.locator(".desk-note").first).to_contain_text("You approved desk_refund")
    run_owed()

    assert len(agents_for_admin.RAN) == 1


def test_two_people_on_one_row(
    open_as: OpenAs, reviewer: User, other_reviewer: User
) -> None:
    row = refund()
    first, second = open_as(reviewer, url(row)), open_as(other_reviewer, url(row))
    second.fill("#reason", "I do not like it.\nAt all.")
    first.click(".desk-panel button[value=approve]")
    first.wait_for_url("**/?done=*")
    second.click(".desk-panel button[value=reject]")

    expect(second.locator("h1")).to_contain_text("tom.weber")
    expect(second.locator(".desk")).to_contain_text("I do not like it.")
    row.refresh_from_db()
    assert (row.decision, row.decided_by) == ("approve", reviewer)


def test_the_back_button_after_deciding(open_as: OpenAs, reviewer: User) -> None:
    row = refund()
    page = open_as(reviewer, url(row))
    page.click(".desk-panel button[value=approve]")
    page.wait_for_url("**/?done=*")
    page.go_back()

    if page.locator(".desk-panel button[value=reject]").count():
        page.fill("#reason", "Too late")
        page.click(".desk-panel button[value=reject]")
        page.wait_for_load_state()
    expect(page.locator(".desk")).to_contain_text("tom.weber")
    row.refresh_from_db()
    assert row.decision == "approve"


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_what_was_typed_outlives_the_session(
    open_as: OpenAs, reviewer: User, scripts: bool
) -> None:
    row = refund()
    page = open_as(reviewer, url(row), java_script_enabled=scripts)
    page.fill("#reason", "Three lines\nof thought <b>about</b>\nit")
    Session.objects.all().delete()
    page.click(".desk-panel button[value=reject]")

    expect(page.locator("h1")).to_have_text("You were logged out")
    expect(page.locator(".desk")).to_contain_text("of thought <b>about</b>")
    row.refresh_from_db()
    assert row.status == "pending"


def test_an_edit_outlives_the_session(open_as: OpenAs, reviewer: User) -> None:
    row = refund()
    page = open_as(reviewer, url(row, "edit"))
    page.fill(f"#id_{key_of(row, 'note')}", "Half a refund was agreed")
    Session.objects.all().delete()
    page.click(".desk-foot button[value=review]")

    expect(page.locator(".desk")).to_contain_text("Half a refund was agreed")
    row.refresh_from_db()
    assert row.status == "pending"


def test_a_page_that_came_back_in_another_version(
    open_as: OpenAs, reviewer: User
) -> None:
    row = refund()
    page = open_as(reviewer, url(row))
    page.locator("#decide input[name=revision]").evaluate("one => { one.value = '0'; }")
    page.click(".desk-panel button[value=approve]")

    expect(page.locator(".desk")).to_contain_text("It still waits for a decision.")
    row.refresh_from_db()
    assert row.status == "pending"

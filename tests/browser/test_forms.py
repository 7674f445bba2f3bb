"""Lists in the forms of the desk, in a real browser, with scripts and without."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from tests.admin.scenes import key_of, refund, url
from tests.browser.conftest import OpenAs

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("scripts", [True, False])
def test_items_are_removed_added_and_filled_in(
    open_as: OpenAs, reviewer: User, scripts: bool
) -> None:
    row = refund()
    key = key_of(row, "items")
    page = open_as(reviewer, url(row, "edit"), java_script_enabled=scripts)

    page.fill(f"#id_{key}_1_p0", "3")
    page.click(f"button[name=drop][value='{key}:0']")
    expect(page.locator(f"#id_{key}_0_p1")).to_have_count(0)
    expect(page.locator(f"#id_{key}_1_p0")).to_have_value("3")
    page.click(f"button[name=add][value='{key}']")
    page.fill(f"#id_{key}_2_p1", "JUG-1")
    page.click(".desk-foot button[value=review]")
    expect(page.locator(".desk-meta")).to_contain_text("1 of 8 arguments differ")
    page.click("button:has-text('Approve the edit and run')")
    page.wait_for_url("**/?done=*")

    row.refresh_from_db()
    assert row.decision == "edit"
    assert json.loads(row.decision_args_text or "")["items"] == [
        {"sku": "WARR-2Y", "quantity": 3},
        {"sku": "JUG-1", "quantity": 1},
    ]

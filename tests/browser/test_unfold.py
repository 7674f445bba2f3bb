"""The desk under django-unfold, in a browser: it decides, and can be read in the dark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from tests.admin.scenes import LIST, charge_in_doubt, refund, start, url
from tests.browser.conftest import OpenAs
from tests.browser.processes import web
from tests.browser.test_axe import AXE, SERIOUS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def unfold(django_db_setup: None) -> Iterator[str]:
    with web("tests.settings.browser_unfold") as address:
        yield address


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_can_be_read(
    open_as: OpenAs, boss: User, unfold: str, scheme: str
) -> None:
    row, doubt = refund(note="Broken\u202e on arrival"), charge_in_doubt()
    start(*[("desk_hurry", {"service": name}) for name in "ab"])
    page = open_as(boss, base=unfold, color_scheme=scheme)
    for place in (LIST, url(row), url(row, "edit"), url(doubt), f"{LIST}numbers/"):
        page.goto(place)
        page.wait_for_selector(
            "html.dark" if scheme == "dark" else "html:not(.dark)", state="attached"
        )
        page.evaluate(AXE.read_text(encoding="utf-8"))
        result = page.evaluate("axe.run('.desk', {resultTypes: ['violations']})")
        found = [
            (one["id"], [node["html"][:160] for node in one["nodes"]])
            for one in result["violations"]
            if one["impact"] in SERIOUS
        ]
        assert found == [], place


def test_it_is_decided_by_keys(open_as: OpenAs, boss: User, unfold: str) -> None:
    row = refund()
    page = open_as(boss, url(row), base=unfold)
    with page.expect_navigation():
        page.keyboard.press("u")
    page.keyboard.press("j")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?done=*")

    row.refresh_from_db()
    assert row.decision == "approve"

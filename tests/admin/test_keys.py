"""What the desk's one script stands on: marks in the pages, the sheet, and the count."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client

from tests.admin.scenes import LIST, ask, refund, send, url

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = re.compile(r'data-desk-arrived="([^"]+)"')


def arrived_url(client: Client, query: str = "") -> str:
    found = ADDRESS.search(client.get(f"{LIST}{query}").content.decode())
    assert found
    return found[1].replace("&amp;", "&")


def test_pages_name_where_each_key_leads(desk: Client) -> None:
    first = refund()
    refund(order_id="A-2")

    page = desk.get(url(first)).content.decode()
    listed = desk.get(LIST).content.decode()

    assert set(re.findall(r'data-desk-key="(.)"', page)) >= set("aerjksu")
    assert set(re.findall(r'data-desk-key="(.)"', listed)) >= set("/?")
    assert listed.count("data-desk-row") == 2


def test_without_the_script_no_page_promises_a_key(desk: Client) -> None:
    row = refund()
    for page in (LIST, url(row), url(row, "edit")):
        html = desk.get(page).content.decode()
        outside = re.sub(r"<dialog.*?</dialog>", "", html, flags=re.DOTALL)

        assert "<kbd" not in outside
        assert "aria-keyshortcuts" not in html


def test_the_sheet_is_a_page_too(desk: Client, stranger: User, login: Any) -> None:
    page = desk.get(f"{LIST}keys/")

    assert page.status_code == 200
    assert "No single key decides anything" in page.content.decode()
    assert "<dialog" not in page.content.decode()


def test_the_script_is_loaded_late_and_holds_no_words(desk: Client) -> None:
    path = finders.find("hitl_approvals/desk.js")
    assert path
    html = desk.get(url(refund())).content.decode()

    assert re.search(
        r'<script src="[^"]*hitl_approvals/desk\.js" defer></script>', html
    )
    source = Path(path).read_text()
    assert not re.search(r"\beval\b|new Function|innerHTML|\.style\b", source)


def test_what_arrived_is_counted_from_when_the_page_was_opened(desk: Client) -> None:
    refund()
    address = arrived_url(desk)

    before = desk.get(address).json()
    refund(order_id="A-2")
    ask("Which one?")
    after = desk.get(address).json()

    assert before["count"] == 0
    assert (after["count"], after["last"], after["url"]) == (2, False, "?")
    assert after["text"] == "2 more arrived since you opened this page."


def test_what_arrived_and_was_decided_is_not_counted(
    desk: Client, other_reviewer: User, login: Any
) -> None:
    address = arrived_url(desk)
    send(login(other_reviewer), refund(), "approve")

    assert desk.get(address).json()["count"] == 0


def test_the_count_keeps_to_the_filters_of_its_page(desk: Client) -> None:
    address = arrived_url(desk, "?kind=question&tool=")
    refund()
    ask("Which one?")

    told = desk.get(address).json()

    assert (told["count"], told["url"]) == (1, "?kind=question")


def test_only_the_open_view_asks(desk: Client) -> None:
    assert "data-desk-arrived" not in desk.get(f"{LIST}?view=decided").content.decode()


def test_the_count_stops_at_its_cap(
    desk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hitl_approvals.admin.arrivals.MOST", 2)
    address = arrived_url(desk)
    for number in range(4):
        refund(order_id=f"A-{number}")

    told = desk.get(address).json()

    assert (told["count"], told["last"]) == (3, True)
    assert told["text"].startswith("2+ more arrived")


def test_a_stranger_and_a_malformed_question_get_no_count(
    desk: Client, stranger: User, login: Any
) -> None:
    address = arrived_url(desk)

    assert login(stranger).get(address).status_code == 403
    assert Client().get(address).status_code == 302
    assert desk.post(address).status_code == 405
    assert desk.get(f"{LIST}arrived/?since=x").status_code == 400


def test_the_bound_names_no_row(desk: Client) -> None:
    row = refund()

    assert str(row.pk) not in arrived_url(desk)

"""Under django-unfold every page of the desk opens, and decides, as it stands."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client

from hitl_approvals.models import PendingInterrupt
from hitl_approvals.testing import run_owed
from tests.admin.scenes import (
    LIST,
    ask,
    charge_in_doubt,
    confirm,
    edit,
    refund,
    send,
    start,
    url,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desk() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


def html_of(response: Any) -> str:
    assert response.status_code == 200
    html: str = response.content.decode()
    # The theme's own frame, and the desk with its style and its script within.
    assert "unfold/css/styles" in html
    assert 'class="desk"' in html
    assert "hitl_approvals/desk.css" in html
    assert "hitl_approvals/desk.js" in html
    assert html.count('<h1 class="desk') + html.count("<h1>") == 1
    return html


def test_the_theme_is_the_one_that_is_tried() -> None:
    assert type(admin.site).__module__.startswith("unfold")


def test_list_call_and_edit_open(desk: Client) -> None:
    row = refund()

    assert "desk_refund" in html_of(desk.get(LIST))
    assert "Approve and run" in html_of(desk.get(url(row)))
    assert "See what changes" in html_of(desk.get(url(row, "edit")))
    assert "No single key decides" in html_of(desk.get(f"{LIST}keys/"))


def test_doubt_question_turn_and_numbers_open(desk: Client) -> None:
    doubt = charge_in_doubt()

    assert "may have run, or not" in html_of(desk.get(url(doubt)))
    assert "It asks" in html_of(desk.get(url(ask("Which one?"))))
    assert "Journal" in html_of(desk.get(url(doubt.turn, model="agentturn")))


def test_an_edit_is_confirmed_and_runs_once(desk: Client) -> None:
    row = refund()

    review = edit(desk, row, amount="120.00")
    assert "Approve the edit and run" in html_of(review)
    assert confirm(desk, review).status_code == 302

    row.refresh_from_db()
    assert row.decision == "edit"
    assert run_owed() == ["completed"]


def test_a_call_is_rejected_and_another_approved(desk: Client) -> None:
    first, second = refund(), refund(order_id="A-2")

    assert send(desk, first, "reject", reason="Not like this.").status_code == 302
    assert send(desk, second, "approve").status_code == 302
    assert "was decided" in html_of(desk.get(url(first)))
    assert run_owed() == ["completed", "completed"]


def test_a_turn_of_many_calls_stands_together(desk: Client) -> None:
    start(*[("desk_hurry", {"service": name}) for name in "abc"])

    assert "3 calls wait" in html_of(desk.get(LIST))
    assert PendingInterrupt.objects.count() == 3

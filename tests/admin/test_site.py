from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import path

from hitl_approvals.admin import PendingInterruptAdmin
from hitl_approvals.models import PendingInterrupt
from tests.admin.html_forms import as_sent, form_to
from tests.admin.scenes import refund, start, url

pytestmark = pytest.mark.django_db(transaction=True)

own_site = AdminSite(name="backoffice")
own_site.register(PendingInterrupt, PendingInterruptAdmin)
urlpatterns = [path("backoffice/", own_site.urls)]


@override_settings(ROOT_URLCONF=__name__)
def test_a_site_of_ones_own_with_only_the_interrupts(boss: User, login: Any) -> None:
    row, following = refund(), refund(order_id="A-2")
    client = login(boss)
    base = "/backoffice/hitl_approvals/pendinginterrupt/"

    page = client.get(f"{base}{row.pk}/change/")
    form = form_to(page, "/decide/")
    response = client.post(form.action, as_sent({**form.fields, "decision": "approve"}))

    html = page.content.decode()
    assert client.get(base).status_code == 200
    assert 'href="/admin/' not in html
    assert "See the whole turn" not in html
    assert client.get(f"{base}{row.pk}/edit/").status_code == 302
    assert client.get(f"{base}{following.pk}/edit/").status_code == 200
    assert response.url.startswith(f"{base}{following.pk}/change/")


def test_a_page_of_one_row_asks_a_fixed_number_of_queries(
    desk: Client, other_reviewer: User
) -> None:
    def queries(row: PendingInterrupt) -> int:
        with CaptureQueriesContext(connection) as found:
            assert desk.get(url(row)).status_code == 200
        return len(found)

    lonely = refund()
    few = queries(lonely)
    calls = [("desk_hurry", {"service": str(number)}) for number in range(6)]
    turn = start(*calls, messages=[{"role": "user", "content": "x"}] * 20)
    busy = turn.interrupts.first()
    for _ in range(5):
        refund()

    assert busy is not None
    assert queries(busy) <= few
    assert few <= 24


def test_views_stay_out_of_a_request_wide_transaction(desk: Client) -> None:
    row = refund()
    form = form_to(desk.get(url(row)), "/decide/")
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    try:
        with CaptureQueriesContext(connection) as found:
            assert desk.get(url(row)).status_code == 200
        looked = [one["sql"] for one in found]
        response = desk.post(
            form.action, as_sent({**form.fields, "decision": "approve"})
        )
    finally:
        connection.settings_dict["ATOMIC_REQUESTS"] = False

    assert not any(sql.startswith(("BEGIN", "SAVEPOINT")) for sql in looked)
    assert response.status_code == 302


def test_the_style_sheet_is_found_and_every_page_loads_it(desk: Client) -> None:
    assert finders.find("hitl_approvals/desk.css")
    assert "hitl_approvals/desk.css" in desk.get(url(refund())).content.decode()


def test_pages_are_labelled_for_screen_readers(desk: Client) -> None:
    import re

    row = refund()
    for page in ("change", "edit"):
        html = desk.get(url(row, page)).content.decode()

        ids = re.findall(r'\sid="([^"]+)"', html)
        assert len(ids) == len(set(ids)), "an id stands twice"
        for attribute in ("aria-labelledby", "aria-describedby", "for"):
            for value in re.findall(rf'\s{attribute}="([^"]+)"', html):
                assert set(value.split()) <= set(ids), (attribute, value)
        assert html.count("<h1") == 1
        assert re.search(r"<main\b", html)


@override_settings(LANGUAGE_CODE="ar")
def test_it_stands_in_a_right_to_left_admin(desk: Client) -> None:
    assert 'dir="rtl"' in desk.get(url(refund())).content.decode()
    assert django_settings.USE_I18N

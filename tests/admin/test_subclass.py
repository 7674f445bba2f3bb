"""A site adds to the desk by subclassing it, and cannot take away from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.sites import all_sites
from django.contrib.auth.models import User
from django.core.checks import CheckMessage
from django.http import HttpRequest
from django.test import override_settings
from django.urls import path

from hitl_approvals.admin import PendingInterruptAdmin, Section
from hitl_approvals.checks.desk import check_desk
from hitl_approvals.models import PendingInterrupt
from tests.admin.scenes import charge_in_doubt, refund

DESK = "/shop/hitl_approvals/pendinginterrupt/"


class ShopDesk(PendingInterruptAdmin):
    sections = (*PendingInterruptAdmin.sections, "customer", "nothing")

    def section_customer(self, request: HttpRequest, row: PendingInterrupt) -> Section:
        return Section("The <customer>", "Since 2019", [("Orders <b>", row.tool_name)])

    def section_nothing(self, request: HttpRequest, row: PendingInterrupt) -> None:
        return None

    def row_facts(
        self, request: HttpRequest, rows: Sequence[PendingInterrupt]
    ) -> Mapping[UUID, str]:
        return {row.pk: f"fact <{row.tool_name}>" for row in rows}


shop = admin.AdminSite(name="shop")
shop.register(PendingInterrupt, ShopDesk)
urlpatterns = [path("shop/", shop.urls)]


@pytest.mark.django_db(transaction=True)
@override_settings(ROOT_URLCONF=__name__)
def test_a_subclass_adds_sections_and_facts_and_all_else_stays(
    boss: User, login: Any
) -> None:
    row, doubt = refund(), charge_in_doubt()
    client = login(boss)

    page = client.get(f"{DESK}{row.pk}/change/").content.decode()
    in_doubt = client.get(f"{DESK}{doubt.pk}/change/").content.decode()
    listed = client.get(DESK).content.decode()

    for html in (page, in_doubt):
        assert "The &lt;customer&gt;</h2>" in html
        assert "<dt>Orders &lt;b&gt;</dt>" in html
        assert 'id="h-args"' in html
    assert "fact &lt;desk_refund&gt;" in listed


class TakesAway(PendingInterruptAdmin):
    sections = ("arguments", "asked", "why")


class Misspelt(PendingInterruptAdmin):
    sections = (*PendingInterruptAdmin.sections, "custmer")


class Opens(PendingInterruptAdmin):
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True


class Acts(PendingInterruptAdmin):
    actions = ["delete_selected"]


class Plain(admin.ModelAdmin):  # type: ignore[type-arg]
    pass


@pytest.fixture
def registered() -> Iterator[Any]:
    made: list[admin.AdminSite] = []

    def register(with_class: Any) -> list[CheckMessage]:
        site = admin.AdminSite(name="tried")
        made.append(site)
        site.register(PendingInterrupt, with_class)
        return [one for one in check_desk(None) if one.obj is with_class]

    yield register
    for site in made:
        all_sites.discard(site)


@pytest.mark.parametrize(
    ("desk", "said"),
    [
        (TakesAway, "drops the sections conversation, siblings, timeline"),
        (Misspelt, "has no method section_custmer()"),
        (Opens, "overrides has_change_permission()"),
        (Acts, "has actions"),
        (Plain, "is no PendingInterruptAdmin"),
    ],
)
def test_a_desk_that_hides_what_counts_is_refused(
    registered: Any, desk: Any, said: str
) -> None:
    (found,) = registered(desk)

    assert found.id == "hitl_approvals.E009"
    assert said in found.msg
    assert found.is_serious()


@pytest.mark.django_db(transaction=True)
def test_a_section_that_a_subclass_dropped_is_shown_all_the_same(
    boss: User, login: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ShopDesk, "sections", ())
    with override_settings(ROOT_URLCONF=__name__):
        page = login(boss).get(f"{DESK}{refund().pk}/change/").content.decode()

    assert all(f'id="h-{name}"' in page for name in ("args", "ask", "why", "time"))


def test_a_desk_as_it_is_and_one_that_only_adds_pass(registered: Any) -> None:
    assert registered(ShopDesk) == []
    assert check_desk(None) == []


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("{% load i18n %}<p>approve?</p>", 1),
        (
            "{% extends 'admin/hitl_approvals/interrupt.html' %}{% block crumbs %}{% endblock %}",
            0,
        ),
    ],
)
def test_a_template_of_the_site_may_extend_and_not_replace(
    tmp_path: Path, source: str, faults: int
) -> None:
    folder = tmp_path / "admin" / "hitl_approvals"
    folder.mkdir(parents=True)
    (folder / "interrupt.html").write_text(source)
    engine = {**settings.TEMPLATES[0], "DIRS": [tmp_path]}

    with override_settings(TEMPLATES=[engine]):
        found = check_desk(None)

    assert len(found) == faults
    assert all("leaves out _arguments.html" in one.msg for one in found)

"""How the API stands in a site: transactions, prefixes, settings, and what it imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections
from django.urls import include, path, resolve, reverse

from hitl_approvals import services
from hitl_approvals.models import ReviewQueue
from tests.api import scenes

urlpatterns = [
    path(
        "<slug:tenant>/v1/",
        include(([path("x/", include("hitl_approvals.api.urls"))], "outer")),
    ),
    path("second/", include("hitl_approvals.api.urls", namespace="second")),
]


@pytest.mark.django_db(transaction=True)
def test_a_decision_is_committed_before_the_response(reviewer, monkeypatch):
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    row = scenes.pending()
    within: list[bool] = []
    original = services.decide

    def decide(*args: Any, **kwargs: Any) -> Any:
        within.append(connection.in_atomic_block)
        return original(*args, **kwargs)

    monkeypatch.setattr(services, "decide", decide)
    response = reviewer.post(scenes.url(row, "approve"))

    assert (response.status_code, within) == (200, [False])


@pytest.mark.parametrize("name", ["interrupt-list", "turn-list"])
def test_every_view_is_outside_of_requests_transactions(name):
    view = resolve(reverse(f"hitl_approvals_api:{name}")).func

    assert view._non_atomic_requests == set(connections)


def test_the_names_of_the_addresses():
    pk = "00000000-0000-0000-0000-000000000001"

    for name, address in {
        "interrupt-list": "/api/interrupts/",
        "turn-list": "/api/turns/",
    }.items():
        assert reverse(f"hitl_approvals_api:{name}") == address
    for verb in ("approve", "reject", "edit", "respond"):
        found = reverse(f"hitl_approvals_api:interrupt-{verb}", args=[pk])
        assert found == f"/api/interrupts/{pk}/{verb}/"
    for kind in ("interrupt", "turn"):
        found = reverse(f"hitl_approvals_api:{kind}-detail", args=[pk])
        assert found == f"/api/{kind}s/{pk}/"


@pytest.mark.parametrize("prefix", ["/acme/v1/x/", "/second/"])
def test_addresses_stay_under_the_prefix_that_was_called(reviewer, settings, prefix):
    settings.ROOT_URLCONF = __name__
    row = scenes.pending()

    listed = reviewer.get(f"{prefix}interrupts/").json()["results"][0]["url"]
    shown = reviewer.get(listed).json()["url"]
    decided = reviewer.post(f"{listed}approve/")

    assert listed == shown == f"http://testserver{prefix}interrupts/{row.pk}/"
    assert decided.status_code == 200


def test_the_sites_own_settings_change_no_answer(reviewer, settings):
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "EXCEPTION_HANDLER": "nowhere.handler",
        "DEFAULT_VERSIONING_CLASS": "rest_framework.versioning.NamespaceVersioning",
        "COERCE_DECIMAL_TO_STRING": False,
        "DATETIME_FORMAT": "%s",
        "UNICODE_JSON": True,
        "COMPACT_JSON": False,
    }
    row = scenes.pending()

    assert reviewer.get(scenes.url(row)).json()["requested_at"].endswith("Z")
    assert reviewer.get(f"{scenes.LIST}7/").json()["code"] == "interrupt_not_found"


def test_no_answer_lists_rows_that_one_may_not_see(reviewer, people):
    ReviewQueue.objects.create(slug="secret-queue").users.add(people["superuser"])
    row = scenes.pending()

    for response in (
        reviewer.get(scenes.LIST, headers={"Accept": "text/html"}),
        reviewer.options(scenes.LIST),
        reviewer.options(scenes.url(row)),
        reviewer.get(f"{scenes.LIST}?queue=secret-queue"),
        reviewer.get(f"{scenes.LIST}?queue=nowhere"),
    ):
        assert b"secret-queue" not in response.content
        assert b"superuser" not in response.content


def test_the_api_does_without_its_extra():
    code = (
        "import sys; sys.modules['drf_spectacular'] = None\n"
        "from django.conf import settings; settings.REST_FRAMEWORK = {}\n"
        "import django; django.setup()\n"
        "import hitl_approvals.api.urls"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings.sqlite"}

    subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        check=True,
        env=environment,
        cwd=Path(__file__).resolve().parents[2],
    )


def test_the_schema_can_be_made():
    from drf_spectacular.generators import SchemaGenerator

    paths = SchemaGenerator(patterns=None).get_schema(request=None, public=True)[
        "paths"
    ]

    assert "/api/interrupts/{id}/approve/" in paths
    assert "/api/turns/" in paths

"""Each system check finds what it is for, says what to do, and is quiet otherwise."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from celery import Celery
from django.core.checks import INFO, CheckMessage
from django.db import connections
from django.http import HttpResponse
from django.urls import include, path
from pytest_django.fixtures import Settings

from hitl_approvals import checks, gate_only
from hitl_approvals.agents.capabilities import DISTRIBUTIONS
from hitl_approvals.checks import broker
from hitl_approvals.dispatchers.broker import BrokerSettings
from hitl_approvals.exceptions import MissingExtra
from hitl_approvals.registry import AgentDefinition, Tool, registry, tool
from tests.workspace import ROOT


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "agents", {})
    monkeypatch.setattr(registry, "tools", {})


def found(*databases: str) -> list[CheckMessage]:
    return checks.run(databases)


def ids(*databases: str) -> list[str]:
    return [str(message.id).partition(".")[2] for message in found(*databases)]


def test_a_site_that_is_set_up_as_documented_passes() -> None:
    assert ids("default") == []


def test_every_finding_but_those_of_single_settings_has_a_hint(
    settings: Settings, celery_app: Celery
) -> None:
    settings.USE_TZ = False

    messages = found("default")

    assert messages
    assert all(message.hint for message in messages)


def test_a_silenced_finding_is_left_out(settings: Settings) -> None:
    settings.USE_TZ = False
    settings.SILENCED_SYSTEM_CHECKS = ["hitl_approvals.E001"]

    assert ids() == []


def test_naive_datetimes_are_refused(settings: Settings) -> None:
    settings.USE_TZ = False

    assert ids() == ["E001"]


@pytest.mark.parametrize(
    ("zone", "keeps_zones", "found"),
    [
        ("Asia/Kathmandu", False, ["E016"]),
        ("Asia/Kathmandu", True, []),
        ("UTC", False, []),
        (None, False, []),
    ],
)
def test_local_times_are_refused_where_columns_keep_no_zone(
    monkeypatch: pytest.MonkeyPatch,
    zone: str | None,
    keeps_zones: bool,
    found: list[str],
) -> None:
    connection = connections["default"]
    monkeypatch.setitem(connection.settings_dict, "TIME_ZONE", zone)
    monkeypatch.setattr(connection.features, "supports_timezones", keeps_zones)

    assert ids() == found


class Scattered:
    """Puts the audit trail into a database of its own."""

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "elsewhere" if model.__name__ == "InterruptEvent" else None


def test_tables_in_two_databases_are_refused(settings: Settings) -> None:
    settings.DATABASE_ROUTERS = [f"{__name__}.Scattered"]

    assert ids() == ["E002"]


class PeopleElsewhere:
    """Keeps users and groups in a database of their own."""

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "people" if model._meta.app_label == "auth" else None


def test_reviewers_in_another_database_are_refused(settings: Settings) -> None:
    settings.DATABASE_ROUTERS = [f"{__name__}.PeopleElsewhere"]

    (message,) = found()

    assert (message.id, message.msg) == (
        "hitl_approvals.E006",
        "Reviewers and their queues are in different databases: User in 'people', "
        "Group in 'people', ReviewQueue in 'default'.",
    )


@pytest.mark.parametrize("value", ["x", ["LEASE"], 3])
def test_settings_that_are_no_dict_are_refused(settings: Settings, value: Any) -> None:
    settings.HITL_APPROVALS = value

    assert ids() == ["E003"]


def test_an_unknown_setting_is_refused(settings: Settings) -> None:
    settings.HITL_APPROVALS = {"DISPATCHER": "worker", "LEASES": 3}

    (message,) = found()

    assert (message.id, message.msg) == (
        "hitl_approvals.E003",
        "HITL_APPROVALS has no key 'LEASES'.",
    )


def test_an_unknown_dispatcher_is_refused(settings: Settings) -> None:
    settings.HITL_APPROVALS = {"DISPATCHER": "rq"}

    assert ids() == ["E004"]


@pytest.mark.parametrize("value", [0, -1, "60", True, None])
def test_a_duration_that_is_no_number_above_0_is_refused(
    settings: Settings, value: Any
) -> None:
    settings.HITL_APPROVALS = {"DISPATCHER": "worker", "LEASE": value}

    assert ids() == ["E005"]


@pytest.mark.parametrize("mode", [None, "DEFERRED"])
def test_sqlite_that_is_not_immediate_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, mode: str | None
) -> None:
    connection = connections["default"]
    monkeypatch.setattr(type(connection), "vendor", "sqlite")
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {"transaction_mode": mode})

    assert ids("default") == ["W001"]
    assert ids() == [], "only a database that was named may be looked at"


def test_redis_without_timeouts_is_warned_of(celery_app: Celery) -> None:
    celery_app.conf.broker_url = "redis://localhost/0"

    (message,) = found()

    assert (message.id, message.msg) == (
        "hitl_approvals.W002",
        "The broker has no socket_connect_timeout and no socket_timeout.",
    )


def test_redis_with_one_timeout_is_warned_of(celery_app: Celery) -> None:
    celery_app.conf.broker_url = "rediss://localhost/0"
    celery_app.conf.broker_transport_options = {"socket_timeout": 5}

    assert [message.msg for message in found()] == [
        "The broker has no socket_connect_timeout."
    ]


@pytest.mark.parametrize("url", ["redis://localhost/0", "amqp://localhost//"])
def test_a_broker_with_timeouts_passes(celery_app: Celery, url: str) -> None:
    celery_app.conf.broker_url = url
    celery_app.conf.broker_transport_options = dict.fromkeys(broker.TIMEOUTS, 5)

    assert ids() == []


def test_no_broker_is_looked_at_where_none_is_used(
    celery_app: Celery, settings: Settings
) -> None:
    celery_app.conf.broker_url = "redis://localhost/0"
    settings.HITL_APPROVALS = {"DISPATCHER": "worker"}

    assert ids() == []


@pytest.mark.parametrize(
    ("visibility", "limit", "expected"),
    [
        (None, 7200, ["W006"]),
        (60, 300, ["W006"]),
        (300, 300, []),
        (None, 600, []),
        (60, None, []),
    ],
)
def test_a_visibility_timeout_below_the_task_limit_is_warned_of(
    celery_app: Celery,
    visibility: int | None,
    limit: int | None,
    expected: list[str],
) -> None:
    options: dict[str, Any] = dict.fromkeys(broker.TIMEOUTS, 5)
    if visibility is not None:
        options["visibility_timeout"] = visibility
    celery_app.conf.broker_url = "redis://localhost/0"
    celery_app.conf.broker_transport_options = options
    celery_app.conf.task_time_limit = limit

    assert ids() == expected


def test_a_process_without_a_broker_s_name_is_warned_of(celery_app: Celery) -> None:
    assert ids() == ["W008"]


def test_celery_settings_that_cannot_be_read_are_warned_of(
    celery_app: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(cls: Any) -> Any:
        raise RuntimeError("no module named site.celeryconfig")

    monkeypatch.setattr(BrokerSettings, "read", classmethod(broken))

    (message,) = found()

    assert message.id == "hitl_approvals.W008"
    assert "site.celeryconfig" in message.msg


def test_a_missing_driver_is_named_and_not_what_kombu_makes_of_it() -> None:
    script = (
        "import sys; sys.modules['redis'] = None\n"
        "from django.conf import settings; settings.HITL_APPROVALS = {}\n"
        "import django; django.setup()\n"
        "from celery import Celery\n"
        "Celery(broker='redis://127.0.0.1:1/0').set_current()\n"
        "from hitl_approvals import checks\n"
        "from hitl_approvals.dispatchers import broker\n"
        "(found,) = checks.check_broker(None)\n"
        "print(found.id, found.msg, found.hint, broker.reach(5), sep='\\n')\n"
    )

    told = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True
    )

    assert told.returncode == 0, told.stderr
    number, message, hint, reached = told.stdout.splitlines()
    assert number == "hitl_approvals.W008"
    assert message.endswith('pip install "django-hitl-approvals[redis]"')
    assert hint.startswith("Install it for web processes and workers. Or set ")
    assert reached == f"MissingExtra: {message}"


def stands_for_ours(request: Any) -> HttpResponse:
    return HttpResponse()


def belongs_to_the_site(request: Any) -> HttpResponse:
    return HttpResponse()


stands_for_ours.__module__ = "hitl_approvals.somewhere"
inner: list[Any] = [
    path("ours/", stands_for_ours),
    path("site/", belongs_to_the_site),
]
urlpatterns: list[Any] = [
    path("", include(("tests.urls", "whole"))),
    path("nested/", include((inner, "inner"))),
]


@pytest.fixture
def atomic_requests(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__
    monkeypatch.setitem(connections["default"].settings_dict, "ATOMIC_REQUESTS", True)


@pytest.mark.usefixtures("atomic_requests")
def test_a_view_of_ours_inside_the_request_s_transaction_is_warned_of() -> None:
    (message,) = found()

    assert (message.id, message.msg) == (
        "hitl_approvals.W003",
        "ATOMIC_REQUESTS wraps hitl_approvals.somewhere.stands_for_ours in a "
        "transaction.",
    )


@pytest.mark.usefixtures("atomic_requests")
def test_our_own_api_and_admin_are_exempt(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.urls"

    assert ids() == []


@pytest.mark.usefixtures("atomic_requests")
def test_a_view_that_is_exempt_on_our_database_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        stands_for_ours, "_non_atomic_requests", {"default"}, raising=False
    )

    assert ids() == []


def test_views_are_not_looked_at_without_atomic_requests(settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__

    assert ids() == []


@pytest.mark.usefixtures("atomic_requests")
def test_a_site_without_urls_passes(settings: Settings) -> None:
    settings.ROOT_URLCONF = None

    assert ids() == []


def declared(name: str, **options: Any) -> Tool[Any, Any]:
    def act() -> None:
        """Do it."""

    act.__qualname__ = name
    options.setdefault("effect", "unsafe")
    return tool(name=name, **options)(act)


def test_tools_that_declare_no_effect_are_warned_of() -> None:
    declared("pay", effect=None)
    declared("mail", effect=None)
    declared("read", effect="none")

    (message,) = found()

    assert (message.id, message.msg) == (
        "hitl_approvals.W004",
        "Tools that do not declare their effect: mail, pay.",
    )


def test_an_agent_of_an_unknown_kind_is_warned_of() -> None:
    registry.add_agent(AgentDefinition("odd", target=declared, kind="astrology"))
    registry.add_agent(AgentDefinition("fine", target=declared))

    (message,) = found()

    assert message.id == "hitl_approvals.W005"
    assert "Agent `odd`" in message.msg
    assert "'astrology'" in message.msg


def test_an_agent_whose_module_fails_is_warned_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(definition: AgentDefinition) -> Any:
        raise ModuleNotFoundError("No module named 'yaml'")

    monkeypatch.setattr("hitl_approvals.agents.base.load", load)
    registry.add_agent(AgentDefinition("graph", target=declared))

    assert [message.msg for message in found()] == [
        "Agent `graph` cannot run in this process: No module named 'yaml'"
    ]


def test_agents_whose_framework_is_not_installed_are_a_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = {**DISTRIBUTIONS, "langgraph": "no-such-distribution"}
    monkeypatch.setattr("hitl_approvals.agents.capabilities.DISTRIBUTIONS", missing)
    for name in ("refunds", "support"):
        registry.add_agent(AgentDefinition(name, target=declared, kind="langgraph"))

    (message,) = found()

    assert (message.id, message.level) == ("hitl_approvals.I001", INFO)
    assert "`refunds`, `support`" in message.msg
    assert 'pip install "django-hitl-approvals[langgraph]"' in str(message.hint)


def test_a_framework_of_the_sites_own_that_is_missing_is_a_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(definition: AgentDefinition) -> Any:
        raise MissingExtra("not here")

    monkeypatch.setattr("hitl_approvals.agents.base.load", load)
    registry.add_agent(AgentDefinition("mine", target=declared, kind="shop.loops"))

    (message,) = found()

    assert (message.id, message.level) == ("hitl_approvals.I001", INFO)
    assert "'shop.loops'" in message.msg


def test_a_name_in_a_policy_that_no_tool_bears_is_warned_of() -> None:
    declared("pay", requires_approval=gate_only(["pay", "mial"]))
    declared("mail", requires_approval=gate_only(["mail"]))

    (message,) = found()

    assert (message.id, message.msg, message.hint) == (
        "hitl_approvals.W007",
        "The policy of tool `pay` names mial; no tool is called so.",
        "Registered tools: mail, pay.",
    )


def test_policies_that_name_no_tools_pass() -> None:
    declared("free", requires_approval=False)
    declared("asked", requires_approval=lambda call: True)

    assert ids() == []

"""System checks of settings and databases: what cannot work is named before it runs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connections
from django.utils.translation import gettext_lazy

from hitl_approvals import checks
from hitl_approvals.conf import DEFAULTS, hitl_settings


def ids(found):
    return [message.id.removeprefix("hitl_approvals.") for message in found]


def with_settings(settings, value):
    settings.HITL_APPROVALS = value
    return checks.check_settings(None)


# Django 6.1 may ask a SQLite database whether it knows JSON.
@pytest.mark.django_db
def test_the_suites_own_settings_pass():
    call_command("check")


@pytest.mark.parametrize(
    "value",
    [
        {},
        None,
        dict(DEFAULTS),
        {"DISPATCHER": "inline", "EXPIRES_IN": None, "EXECUTE_WITHIN": None},
        {"DELIVERIES_KEPT": None, "WEBHOOK_CELERY_QUEUE": "outside"},
        {"LEASE": 0.5, "MAX_ATTEMPTS": 1, "CELERY_QUEUE": "agents"},
    ],
)
def test_settings_that_can_work_pass(settings, value):
    assert with_settings(settings, value) == []


def test_without_the_dict_the_defaults_hold(settings):
    del settings.HITL_APPROVALS

    assert checks.check_settings(None) == []
    assert hitl_settings.lease == timedelta(seconds=60)
    assert hitl_settings.dispatcher == "celery"
    assert hitl_settings.expires_in is None


@pytest.mark.parametrize("value", ["celery", ["DISPATCHER"], 3])
def test_settings_that_are_no_dict_are_an_error(settings, value):
    assert ids(with_settings(settings, value)) == ["E003"]


def test_a_misspelt_key_is_an_error_that_lists_the_keys(settings):
    (error,) = with_settings(settings, {"DISPATCHR": "celery"})

    assert ids([error]) == ["E003"]
    assert "'DISPATCHR'" in error.msg
    assert "DISPATCHER" in error.hint


def test_an_unknown_dispatcher_is_an_error_that_lists_the_known_ones(settings):
    (error,) = with_settings(settings, {"DISPATCHER": "rq"})

    assert ids([error]) == ["E004"]
    assert "celery, worker, inline" in error.hint


WORDS = {
    "CELERY_QUEUE",
    "CLIENT_LIMITS",
    "DISPATCHER",
    "REJECT_REASONS",
    "THREAD_POLICY",
    "WEBHOOKS",
    "WEBHOOK_ALLOW_HTTP",
    "WEBHOOK_ALLOW_PRIVATE",
    "WEBHOOK_CELERY_QUEUE",
}


@pytest.mark.parametrize("key", sorted(set(DEFAULTS) - WORDS))
@pytest.mark.parametrize("value", [0, -1, "60", True, [60], timedelta(seconds=60)])
def test_a_number_that_is_none_is_an_error_that_names_the_key(settings, key, value):
    found = with_settings(settings, {key: value})

    assert ids(found) == ["E005"]
    assert f"'{key}'" in found[0].msg


@pytest.mark.parametrize(
    "value",
    [
        "Not covered",
        None,
        ["Not covered", 7],
        ["Not covered", ""],
        ["  Not covered"],
        ["Not covered", "Not covered"],
        ["two\nlines"],
        ["x" * 501],
        {"a": "Not covered"},
    ],
)
def test_reasons_that_nobody_could_choose_are_an_error(settings, value):
    assert ids(with_settings(settings, {"REJECT_REASONS": value})) == ["E008"]


def test_reasons_may_be_translated(settings):
    reasons = ("Wrong amount", gettext_lazy("pending"))

    assert with_settings(settings, {"REJECT_REASONS": reasons}) == []
    assert hitl_settings.reject_reasons == ["Wrong amount", "pending"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"opne": 3},
        {"queues": ["default"]},
        {"open": 0},
        {"per_minute": "600"},
        {"waiting": True},
        {"waiting": 1.5},
        {"open": 1_000_001},
    ],
)
def test_limits_of_agent_clients_that_are_none_are_an_error(settings, value):
    assert ids(with_settings(settings, {"CLIENT_LIMITS": value})) == ["E010"]


def test_what_the_limits_of_agent_clients_leave_out_keeps_its_default(settings):
    assert (
        with_settings(settings, {"CLIENT_LIMITS": {"open": 3, "waiting": None}}) == []
    )
    assert hitl_settings.client_limits == {
        "open": 3,
        "per_minute": 600,
        "waiting": None,
    }


@pytest.mark.parametrize("key", ["LEASE", "TIMEOUT", "MAX_ATTEMPTS", "MAX_DEPTH"])
def test_a_limit_that_must_be_there_cannot_be_none(settings, key):
    assert ids(with_settings(settings, {key: None})) == ["E005"]


@pytest.mark.django_db
def test_naive_datetimes_are_refused(settings):
    assert checks.check_time_zone(None) == []

    settings.USE_TZ = False

    assert ids(checks.check_time_zone(None)) == ["E001"]
    with pytest.raises(SystemCheckError, match=r"hitl_approvals\.E001"):
        call_command("check")


class SplitRouter:
    """Sends the events of this app somewhere else."""

    def db_for_write(self, model, **hints):
        return "archive" if model.__name__ == "InterruptEvent" else None


class OtherRouter:
    """Sends the whole app to one other alias."""

    def db_for_write(self, model, **hints):
        return "other" if model._meta.app_label == "hitl_approvals" else None


def test_tables_on_two_aliases_are_refused_by_name(settings):
    assert checks.check_one_database(None) == []

    settings.DATABASE_ROUTERS = [SplitRouter()]
    (error,) = checks.check_one_database(None)

    assert ids([error]) == ["E002"]
    assert "InterruptEvent in 'archive'" in error.msg
    assert "AgentTurn in 'default'" in error.msg


def test_all_tables_on_another_alias_are_fine(settings):
    settings.DATABASE_ROUTERS = [OtherRouter()]

    assert checks.check_one_database(None) == []


def database(monkeypatch, vendor, **options):
    """Let the default alias look like another database."""
    connection = connections["default"]
    monkeypatch.setattr(connection, "vendor", vendor)
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)
    return checks.check_database(None, databases=["default"])


@pytest.mark.parametrize("mode", [None, "DEFERRED", ""])
def test_sqlite_without_immediate_transactions_is_a_warning(monkeypatch, mode):
    options = {} if mode is None else {"transaction_mode": mode}

    (warning,) = database(monkeypatch, "sqlite", **options)

    assert ids([warning]) == ["W001"]
    assert "transaction_mode" in warning.hint


@pytest.mark.parametrize("mode", ["IMMEDIATE", "immediate", "EXCLUSIVE"])
def test_sqlite_with_immediate_transactions_passes(monkeypatch, mode):
    assert database(monkeypatch, "sqlite", transaction_mode=mode) == []


@pytest.mark.parametrize("vendor", ["postgresql", "mysql"])
def test_other_databases_need_no_such_mode(monkeypatch, vendor):
    assert database(monkeypatch, vendor) == []


def test_a_database_that_is_not_asked_about_is_not_looked_at():
    assert checks.check_database(None, databases=None) == []
    assert checks.check_database(None, databases=["other"]) == []

"""Each line about the set-up, and the whole examination behind the command."""

from __future__ import annotations

import json
import socket
import time
from argparse import ArgumentTypeError
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from celery import Celery
from django.core.checks import Info
from django.core.management import call_command
from django.db import OperationalError, connections
from pytest_django.fixtures import Settings

from hitl_approvals import health, services
from hitl_approvals.health import Level, configuration, examination
from hitl_approvals.management.commands.hitl_doctor import seconds
from hitl_approvals.models import AgentTurn, db_now_plus
from hitl_approvals.registry import registry
from tests.support.agents import call
from tests.support.turns import begin, begin_owed

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> tuple[int, str]:
    """Return the exit code and what was printed."""
    out = StringIO()
    try:
        call_command("hitl_doctor", "--no-color", *arguments, stdout=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def test_applied_migrations_are_well() -> None:
    assert configuration.migrations().level is Level.OK


def test_a_missing_migration_is_a_failure_and_the_rows_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = configuration.MigrationLoader

    def without_the_last(connection: Any) -> Any:
        loader = real(connection)
        loader.applied_migrations.pop(("hitl_approvals", "0002_append_only_events"))
        return loader

    monkeypatch.setattr(configuration, "MigrationLoader", without_the_last)

    lines = {line.name: line for line in health.examine()}

    assert lines["migrations"].level is Level.FAIL
    assert "0002_append_only_events" in lines["migrations"].text
    assert "manage.py migrate hitl_approvals" in lines["migrations"].advice
    assert "owed" not in lines


def test_an_agent_that_nobody_registers_here_is_named() -> None:
    turn = begin([call("mail", to="a")])
    AgentTurn.objects.filter(pk=turn.pk).update(agent="retired", agent_version="7")
    begin([call("mail", to="a")])

    line = configuration.agents()

    assert line.level is Level.WARN
    assert line.text == (
        "1 open turn needs what this process does not register: `retired` version 7."
    )
    assert line.facts == {"missing": [{"agent": "retired", "version": "7", "count": 1}]}


def test_a_version_that_is_accepted_is_well() -> None:
    turn = begin([call("mail", to="a")])
    AgentTurn.objects.filter(pk=turn.pk).update(agent_version="1")

    assert configuration.agents().level is Level.OK


@pytest.mark.parametrize(
    ("limit", "level", "text"),
    [
        (86_400, Level.OK, "An approval holds for 1 d."),
        (None, Level.WARN, "An approval may be used at any time later."),
        (
            30,
            Level.WARN,
            "An approval holds for 30 s; to take a turn from a dead worker takes up to "
            "1 min 25 s.",
        ),
    ],
)
def test_how_long_approvals_hold_is_judged(
    settings: Settings, limit: int | None, level: Level, text: str
) -> None:
    settings.HITL_APPROVALS = {"DISPATCHER": "worker", "EXECUTE_WITHIN": limit}

    line = configuration.time_to_start()

    assert (line.level, line.text) == (level, text)


def test_no_broker_is_needed_by_the_worker_command() -> None:
    assert configuration.broker().level is Level.OK


def test_turns_that_run_where_they_are_decided_are_for_tests(
    settings: Settings,
) -> None:
    settings.HITL_APPROVALS = {"DISPATCHER": "inline"}

    assert configuration.broker().level is Level.WARN


def test_a_broker_that_answers_is_well_and_its_password_not_shown(
    celery_app: Celery, redis_url: str
) -> None:
    celery_app.conf.broker_url = redis_url

    line = configuration.broker()

    assert line.level is Level.OK
    assert line.text.startswith("The broker at redis://")


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_broker_that_refuses_is_a_failure(celery_app: Celery, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    celery_app.conf.broker_url = f"{scheme}://:secret@127.0.0.1:{port}/0"

    line = configuration.broker()

    assert line.level is Level.FAIL
    assert "refused" in line.text
    assert "secret" not in line.text


def test_a_broker_that_never_answers_is_a_failure_soon(
    celery_app: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration, "BROKER_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        celery_app.conf.broker_url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        began = time.monotonic()

        line = configuration.broker()

    assert line.level is Level.FAIL
    assert "did not answer within 0.3 s" in line.text
    assert time.monotonic() - began < 5


def test_a_broker_s_url_that_makes_no_sense_is_a_failure(celery_app: Celery) -> None:
    celery_app.conf.broker_url = "pigeon://post"

    line = configuration.broker()

    assert line.level is Level.FAIL
    assert "pigeon" in line.text


def test_findings_of_the_system_checks_are_lines(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HITL_APPROVALS = {"DISPATCHER": "worker", "LEASE": -1, "LEASES": 3}
    # Whatever tools the other tests of this process registered.
    monkeypatch.setattr(registry, "tools", {})

    lines = configuration.system_checks()

    assert [(line.name, line.level) for line in lines] == [
        ("E003", Level.FAIL),
        ("E005", Level.FAIL),
    ]
    assert "Known keys" in lines[0].advice


def test_a_hint_of_the_system_checks_is_told_and_nothing_to_worry_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hint = Info("not here", hint="elsewhere?", id="hitl_approvals.I001")
    monkeypatch.setattr("hitl_approvals.checks.run", lambda databases: [hint])

    (line,) = configuration.system_checks()

    assert (line.name, line.level, line.text) == ("I001", Level.OK, "not here")
    assert line.advice == "elsewhere?"


def test_a_database_that_is_away_is_a_failure_and_the_rest_is_still_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away() -> None:
        raise OperationalError("could not connect")

    with monkeypatch.context() as patch:
        patch.setattr(connections["default"], "ensure_connection", away)
        lines = {line.name: line for line in health.examine()}

    assert lines["database"].level is Level.FAIL
    assert "could not connect" in lines["database"].text
    assert "broker" in lines
    assert "owed" not in lines


def test_a_question_that_breaks_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise ZeroDivisionError("odd")

    monkeypatch.setattr(examination.work, "doubts", broken)

    lines = {line.name: line for line in health.examine()}

    assert lines["doubts"].level is Level.FAIL
    assert "ZeroDivisionError: odd" in lines["doubts"].text
    assert lines["attention"].level is Level.OK


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A site whose sweeper runs, and whose tools say what they do."""
    services.sweep()
    monkeypatch.setattr("hitl_approvals.checks.run", lambda databases: [])


@pytest.mark.usefixtures("swept")
def test_command_ends_with_0_when_all_is_well() -> None:
    code, printed = run()

    assert code == 0
    assert {line[:4] for line in printed.splitlines()} == {"OK  "}
    assert "OK    owed        No runs are owed." in printed.splitlines()


@pytest.mark.usefixtures("swept")
def test_command_ends_with_1_when_somebody_should_look(settings: Settings) -> None:
    settings.HITL_APPROVALS = {"DISPATCHER": "worker", "EXECUTE_WITHIN": None}

    code, printed = run()

    assert code == 1
    assert "WARN  approvals   An approval may be used at any time later." in printed
    assert "                  Set HITL_APPROVALS['EXECUTE_WITHIN']" in printed


@pytest.mark.usefixtures("swept")
def test_command_ends_with_2_when_turns_do_not_go_on() -> None:
    turn = begin_owed()
    late = db_now_plus(timedelta(minutes=-2))
    AgentTurn.objects.filter(pk=turn.pk).update(next_run_at=late)

    assert run()[0] == 0
    assert run("--max-owed", "60")[0] == 2


@pytest.mark.usefixtures("swept")
def test_json_is_one_object() -> None:
    code, printed = run("--json")

    found = json.loads(printed)
    assert (code, found["level"]) == (0, "OK")
    owed = next(line for line in found["lines"] if line["name"] == "owed")
    assert owed == {
        "name": "owed",
        "level": "OK",
        "text": "No runs are owed.",
        "advice": "",
        "facts": {"count": 0, "oldest_seconds": None},
    }


def test_seconds_are_a_number_from_0_up() -> None:
    assert seconds("1.5") == timedelta(seconds=1.5)
    for text in ("-1", "soon", "nan", "inf"):
        with pytest.raises(ArgumentTypeError, match="no number of seconds"):
            seconds(text)

"""Times around a change of the clocks, on connections that live in another time zone.

The site's `TIME_ZONE` is one that changes its clocks; the database's clock is set here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections

from hitl_approvals import services
from hitl_approvals.models import AgentTurn, DbNow, ReviewQueue, db_now_plus
from hitl_approvals.registry import registry
from hitl_approvals.services import turns
from hitl_approvals.statements import kept
from tests.support.agents import call
from tests.support.turns import begin, begin_owed, decide, only

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
NOTE = call("note", "n", text="x")
CHANGES = [
    pytest.param(datetime(2027, 3, 28, 1, tzinfo=UTC), id="an hour is missing"),
    pytest.param(datetime(2027, 10, 31, 1, tzinfo=UTC), id="an hour comes twice"),
]
ZONES = {
    "django.db.backends.postgresql": ("UTC", "Europe/Berlin", "Asia/Karachi"),
    "django.db.backends.mysql": ("+00:00", "+05:00"),
}.get(settings.DATABASES["default"]["ENGINE"], ("none of its own",))
"""Where the connections live. SQLite's have no time zone."""


@pytest.fixture(params=ZONES)
def zone(request: Any, db: None) -> Iterator[str]:
    """The time zone of the connection."""
    zone: str = request.param
    if connection.vendor == "mysql":
        with connection.cursor() as cursor:
            cursor.execute("SET time_zone = %s", [zone])
    elif connection.vendor == "postgresql":
        _live_in(zone)
    yield zone
    if connection.vendor == "postgresql":
        _live_in(None)
    elif connection.vendor == "mysql":
        with connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")


def _live_in(zone: str | None) -> None:
    """Do what Django does with the `TIME_ZONE` of a database when it connects."""
    wrapper = connections["default"]
    wrapper.settings_dict["TIME_ZONE"] = zone
    for name in ("timezone", "timezone_name"):
        vars(wrapper).pop(name, None)
    wrapper.ensure_timezone()
    with connection.cursor() as cursor:
        cursor.execute("SHOW timezone")
        assert cursor.fetchone() == (zone or "UTC",)


@pytest.fixture
def at(
    monkeypatch: pytest.MonkeyPatch, zone: str
) -> Iterator[Callable[[datetime], None]]:
    """Set the clock of the database, as the package reads it."""

    def set_clock(moment: datetime) -> None:
        utc = moment.astimezone(UTC)
        text = f"'{utc:%Y-%m-%d %H:%M:%S.%f}'"
        literal = {
            "postgresql": f"TIMESTAMPTZ {text[:-1]}+00'",
            "mysql": f"TIMESTAMP {text}",
            "sqlite": f"'{utc.replace(tzinfo=None)}'",
        }[connection.vendor]

        def as_sql(*_arguments: Any, **_context: Any) -> tuple[str, list[Any]]:
            return literal, []

        for name in ("as_sql", "as_sqlite", "as_mysql"):
            monkeypatch.setattr(DbNow, name, as_sql)
        _forget()

    yield set_clock
    _forget()


def _forget() -> None:
    """Drop the statements that were compiled: they read the clock as it was."""
    kept.of(connections["default"]).clear()


def test_the_real_clock_tells_utc_in_every_zone(world, zone):
    now = ReviewQueue.objects.annotate(now=DbNow()).get(pk="default").now
    turn = begin([MAIL])
    times = [now, AgentTurn.objects.get(pk=turn.pk).created_at, only(turn).requested_at]

    for moment in times:
        assert abs((moment - datetime.now(UTC)).total_seconds()) < 10


@pytest.mark.parametrize("change", CHANGES)
def test_a_day_to_start_the_call_has_24_hours(world, at, change):
    before = change - timedelta(hours=13)
    at(before)
    row = only(begin([MAIL]))

    decide(row)

    row.refresh_from_db()
    assert row.execute_by == before + timedelta(hours=24)


@pytest.mark.parametrize("change", CHANGES)
def test_a_request_expires_when_its_time_is_over(world, at, change, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "EXPIRES_IN": 3600}
    at(change - timedelta(minutes=30))
    row = only(begin([MAIL]))

    at(change + timedelta(minutes=29))
    early = services.sweep().expired
    at(change + timedelta(minutes=31))

    assert (early, services.sweep().expired) == (0, 1)
    row.refresh_from_db()
    # Python calls no moment of the doubled hour equal to one of another zone.
    assert row.decided_at.astimezone(UTC) == change + timedelta(minutes=31)


@pytest.mark.parametrize("change", CHANGES)
def test_a_lease_holds_across_the_change_and_no_longer(world, at, change):
    turn = begin_owed([NOTE])
    # Owed since before, by the clock that is set.
    AgentTurn.objects.filter(pk=turn.pk).update(next_run_at=change - timedelta(hours=2))
    at(change - timedelta(seconds=30))
    run = turns.claim(turn.pk, registry.runnable())
    assert run is not None

    at(change + timedelta(seconds=29))
    early = services.sweep().revoked
    held = turns.extend_lease(turn.pk, run.fence)
    at(change + timedelta(seconds=88))
    extended = services.sweep().revoked
    at(change + timedelta(seconds=90))

    assert (early, held, extended) == (0, True, 0)
    assert services.sweep().revoked == 1


@pytest.mark.parametrize("change", CHANGES)
def test_a_long_wait_is_as_long_as_it_says(world, at, change):
    at(change - timedelta(hours=1))
    row = AgentTurn.objects.filter(pk=begin_owed([NOTE]).pk)

    row.update(next_run_at=db_now_plus(timedelta(days=2, hours=3)))

    assert row.get().next_run_at == change + timedelta(days=2, hours=2)

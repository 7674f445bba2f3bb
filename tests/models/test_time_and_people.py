"""The database's clock, ids that sort by time, and rows that outlive accounts."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction

from hitl_approvals import Approve, services
from hitl_approvals.models import (
    AgentTurn,
    DbNow,
    InterruptEvent,
    PendingInterrupt,
    ReviewQueue,
    db_now_plus,
)
from hitl_approvals.models.ids import new_id
from tests.support.agents import call
from tests.support.turns import begin, only, resume

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")


def database_now():
    return ReviewQueue.objects.annotate(now=DbNow()).get(pk="default").now


def test_the_database_tells_utc(world):
    off = database_now() - datetime.now(UTC)

    assert abs(off.total_seconds()) < 2


def test_a_default_is_the_moment_of_the_insert_in_utc(world):
    turn = begin([MAIL])

    for moment in (
        AgentTurn.objects.get(pk=turn.pk).created_at,
        only(turn).requested_at,
        only(turn).turn.steps.get().started_at,
    ):
        assert abs((moment - datetime.now(UTC)).total_seconds()) < 5


def test_a_sum_is_stored_and_compared_like_the_moment_itself(world):
    turn = begin([MAIL])
    row = AgentTurn.objects.filter(pk=turn.pk)

    row.update(dispatched_at=db_now_plus(timedelta(days=-1, seconds=-30)))

    found = row.annotate(now=DbNow()).get()
    assert 86_429 < (found.now - found.dispatched_at).total_seconds() < 86_433
    day = timedelta(days=1)
    assert row.filter(dispatched_at__lte=db_now_plus(-day)).exists()
    assert not row.filter(dispatched_at__gt=db_now_plus(-day)).exists()
    assert not row.filter(dispatched_at__lte=db_now_plus(-2 * day)).exists()


def test_moments_less_than_a_second_apart_are_told_apart(world):
    turn = begin([MAIL])
    row = AgentTurn.objects.filter(pk=turn.pk)

    row.update(dispatched_at=db_now_plus(timedelta(milliseconds=700)))

    assert row.filter(dispatched_at__gt=DbNow()).exists()
    assert row.filter(dispatched_at__lt=db_now_plus(timedelta(seconds=1))).exists()


@pytest.mark.parametrize("milliseconds", ["000", "001", "120", "999"])
def test_sqlites_clock_writes_a_moment_as_django_does(milliseconds):
    moment = datetime.fromisoformat(f"2026-11-30T02:25:41.{milliseconds}+00:00")
    sql, _ = DbNow().as_sqlite(None, connection)  # type: ignore[arg-type]

    clock = (sql % ()).replace("'NOW'", f"'2026-11-30 02:25:41.{milliseconds}'")
    with closing(sqlite3.connect(":memory:")) as empty:
        (written,) = empty.execute(f"SELECT {clock}").fetchone()

    # Texts are compared there: a row would come after the very moment it stands at.
    assert written == str(moment.replace(tzinfo=None))


def test_the_clock_goes_on_inside_a_transaction(world):
    with transaction.atomic():
        first = database_now()
        time.sleep(0.02)

        assert database_now() > first


def test_ids_are_uuid7_and_sort_by_time():
    first = new_id()
    time.sleep(0.002)
    second = new_id()

    assert (first.version, second.version) == (7, 7)
    assert first < second


def test_deleting_a_reviewer_keeps_the_rows_and_the_name(world, reviewer):
    turn = begin([MAIL], requested_by=None)
    services.decide(only(turn).pk, Approve(), by=reviewer, via="admin")
    actor = str(reviewer.pk)

    reviewer.delete()

    row = only(turn)
    assert (row.decided_by, row.decided_by_label) == (None, "rita")
    assert (row.status, row.decision, row.decided_via) == (
        "decided",
        "approve",
        "admin",
    )
    event = InterruptEvent.objects.get(interrupt_id=row.pk, type="approved")
    assert (event.actor, event.actor_id) == ("rita", actor)
    assert resume(turn) == "completed"
    assert world.names() == ["mail"]


def test_deleting_a_requester_keeps_the_turn_and_the_name(world, make_user):
    requester = make_user("rolf")
    turn = begin([MAIL], requested_by=requester)

    requester.delete()

    turn.refresh_from_db()
    assert (turn.requested_by, turn.requested_by_label) == (None, "rolf")
    assert turn.status == "suspended"


def test_deleting_a_member_or_an_assignee_keeps_queue_and_row(world, reviewer):
    ReviewQueue.objects.get(pk="default").users.add(reviewer)
    row = only(begin([MAIL]))
    PendingInterrupt.objects.filter(pk=row.pk).update(assignee=reviewer)

    reviewer.delete()

    row.refresh_from_db()
    assert row.assignee is None
    assert list(row.queue.users.all()) == []


def test_the_default_queue_is_made_when_it_is_missing(world):
    ReviewQueue.objects.all().delete()

    row = only(begin([MAIL]))

    assert row.queue_id == "default"
    assert ReviewQueue.objects.filter(pk="default").exists()


def test_rows_name_themselves_readably(world):
    turn = begin([MAIL])
    row = only(turn)

    assert str(turn) == f"scripted {turn.pk}"
    assert str(row) == f"mail {row.pk}"
    assert str(turn.steps.get()) == "model model (succeeded)"
    assert str(InterruptEvent.objects.get()) == f"raised {row.pk} #0"
    assert str(ReviewQueue(slug="a", title="A queue")) == "A queue"

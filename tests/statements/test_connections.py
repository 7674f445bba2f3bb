"""What was compiled for a connection holds through all that befalls a connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import close_old_connections, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F
from django.test.utils import CaptureQueriesContext, override_settings
from django.utils import timezone

from hitl_approvals.models import AgentTurn, DbNow, db_now_plus
from hitl_approvals.services import rows
from hitl_approvals.services.waiting import count_down
from hitl_approvals.statements import Slot, kept

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.breaks_invariants,
]
HOUR = timedelta(hours=1)


@pytest.fixture
def turn() -> AgentTurn:
    kept.of(connections["default"]).clear()
    one = AgentTurn(agent="a", thread_id="t", thread_key="t", next_run_at=DbNow())
    rows.insert([one])
    return one


@contextmanager
def another_connection() -> Iterator[BaseDatabaseWrapper]:
    """Have a second connection to the same database: on PostgreSQL of another kind."""
    first, made = connections["default"], connections["default"].copy()
    if made.vendor == "postgresql":
        # The server gets the values apart from the text, which it keeps as well.
        made.settings_dict["OPTIONS"] |= {
            "server_side_binding": True,
            "prepare_threshold": 1,
        }
    connections["default"] = made
    try:
        yield made
    finally:
        made.close()
        connections["default"] = first


def move(turn: AgentTurn) -> tuple[int, int, Any]:
    """Write and read one row in each way; return what came of it."""
    where = rows.where(AgentTurn, pk=turn.pk, next_run_at__lte=DbNow())
    changed = where.update(
        attempts=F("attempts") + 1, last_error="50% \\ '", parent=None, input={"n": 1}
    )
    missed = rows.where(AgentTurn, agent__in=["x", "y"]).update(error="x")
    return changed, missed, where.first().attempts


@pytest.mark.parametrize(
    "befall",
    [
        lambda: connection.close(),
        close_old_connections,
        lambda: connections.close_all(),
        lambda: timezone.activate("Asia/Kathmandu"),
    ],
    ids=["closed", "old ones closed", "all closed", "another zone"],
)
def test_what_was_compiled_is_used_again(turn, befall):
    first = move(turn)
    compiled = dict(kept.of(connections["default"]))
    try:
        befall()
        second = move(turn)
    finally:
        timezone.deactivate()

    assert (first, second) == ((1, 0, 1), (1, 0, 2))
    assert kept.of(connections["default"]) == compiled


def test_each_connection_has_its_own_texts(turn):
    assert move(turn) == (1, 0, 1)
    with another_connection() as another:
        assert [move(turn) for _time in range(4)][-1] == (1, 0, 5)
        # And whatever else is handed over: a time span, what a column usually holds.
        new = AgentTurn(agent="b", thread_id="u", thread_key="u", next_run_at=DbNow())
        rows.insert([new])
        own = rows.where(AgentTurn, pk=new.pk)
        for _time in range(2):
            assert own.update(next_run_at=db_now_plus(HOUR)) == 1
    assert move(turn) == (1, 0, 6)

    theirs, ours = kept.of(another).values(), kept.of(connections["default"]).values()
    assert not set(map(id, theirs)) & set(map(id, ours))


def test_a_row_that_does_not_change_is_counted(turn):
    """MariaDB counts what it changed, unless it is told to count what it found."""
    same = rows.where(AgentTurn, pk=turn.pk)

    assert [same.update(agent="a", hints=F("hints")) for _time in range(2)] == [1, 1]


def test_the_last_question_and_no_other_makes_the_turn_ready(turn):
    AgentTurn.objects.update(status="suspended", undecided=2)

    moved = []
    for _answer in range(3):
        moved.append(count_down(turn.pk))
        turn.refresh_from_db()
        moved.append((turn.status, turn.undecided))

    assert moved == [True, ("suspended", 1), True, ("ready", 0), False, ("ready", 0)]


def test_what_looks_on_sees_the_text_and_plain_values(turn):
    seen: list[Any] = []

    def look(execute, sql, params, many, context):
        seen.extend(params)
        return execute(sql, params, many, context)

    move(turn)
    with (
        connection.execute_wrapper(look),
        CaptureQueriesContext(connection) as queries,
        override_settings(DEBUG=True),
    ):
        move(turn)

    assert len(queries) == 3
    assert "50%" in queries[0]["sql"]
    assert seen
    assert not any(isinstance(value, Slot) for value in seen)


def test_what_a_savepoint_undoes_is_undone(turn):
    with transaction.atomic():
        move(turn)
        with transaction.atomic():
            move(turn)
            transaction.set_rollback(True)
        assert move(turn) == (1, 0, 2)


def test_a_table_that_gets_another_column_is_read_as_before(turn):
    table = AgentTurn._meta.db_table

    def alter(how: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} {how}")

    with another_connection():
        before = [move(turn) for _time in range(3)]
        alter("ADD COLUMN newer integer NULL")
        try:
            after = move(turn)
        finally:
            alter("DROP COLUMN newer")

    assert [*before, after] == [(1, 0, n) for n in range(1, 5)]

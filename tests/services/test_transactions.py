"""Conflicts of databases are tried again where that is safe, and nowhere else."""

from __future__ import annotations

import sqlite3

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction

from hitl_approvals.exceptions import UnsafeContext
from hitl_approvals.services import transactions
from hitl_approvals.services.transactions import (
    is_transient,
    refuse_inside_transaction,
    run_alone,
    run_atomic,
)
from tests.support.agents import call
from tests.support.turns import begin, decide_and_resume, events, only, resume
from tests.support.world import raises

BOOK = call("book", "b", name="row")


def conflict():
    """MariaDB's deadlock, which is known by its number on any database."""
    return OperationalError(1213, "Deadlock found")


def caused_by(**attributes):
    cause = type("Cause", (Exception,), attributes)()
    error = OperationalError("conflict")
    error.__cause__ = cause
    return error


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(transactions.time, "sleep", lambda seconds: None)


@pytest.mark.parametrize(
    "error",
    [
        caused_by(sqlstate="40P01"),
        caused_by(sqlstate="40001"),
        caused_by(pgcode="40001"),
        OperationalError(1205, "Lock wait timeout exceeded"),
        OperationalError(1213, "Deadlock found"),
        caused_by(sqlite_errorname="SQLITE_BUSY"),
        caused_by(sqlite_errorname="SQLITE_BUSY_SNAPSHOT"),
        caused_by(sqlite_errorname="SQLITE_LOCKED"),
    ],
)
def test_a_conflict_that_a_retry_may_win_is_known(error):
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("server closed the connection"),
        OperationalError(2006, "MySQL server has gone away"),
        OperationalError(),
        caused_by(sqlstate="57014"),
        caused_by(sqlite_errorname="SQLITE_FULL"),
    ],
)
def test_any_other_error_is_none(error):
    assert not is_transient(error)


def test_a_real_lock_of_sqlite_is_known(tmp_path):
    first = sqlite3.connect(tmp_path / "db", isolation_level=None)
    second = sqlite3.connect(tmp_path / "db", isolation_level=None, timeout=0)
    first.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError) as locked:
        second.execute("BEGIN IMMEDIATE")
    error = OperationalError("database is locked")
    error.__cause__ = locked.value

    assert is_transient(error)
    first.close()
    second.close()


@pytest.mark.django_db(transaction=True)
def test_an_outermost_transaction_is_tried_four_times():
    tries = []

    def lose(times):
        tries.clear()

        def work():
            tries.append(True)
            Group.objects.create(name=f"{times}: try {len(tries)}")
            if len(tries) <= times:
                raise conflict()
            return "won"

        return work

    assert run_atomic(lose(3)) == "won"
    assert [group.name for group in Group.objects.all()] == ["3: try 4"]
    with pytest.raises(OperationalError):
        run_atomic(lose(4))
    assert len(tries) == 4
    assert Group.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_part_of_a_callers_transaction_is_never_tried_again():
    tries = []

    def work():
        tries.append(True)
        raise conflict()

    with pytest.raises(OperationalError), transaction.atomic():
        run_atomic(work)

    assert len(tries) == 1


@pytest.mark.django_db(transaction=True)
def test_another_error_is_raised_at_once():
    tries = []

    def work():
        tries.append(True)
        raise OperationalError("gone")

    with pytest.raises(OperationalError):
        run_atomic(work)

    assert len(tries) == 1


@pytest.mark.django_db(transaction=True)
def test_a_durable_transaction_is_no_part_of_another():
    with transaction.atomic(), pytest.raises(RuntimeError):
        run_atomic(lambda: None, durable=True)


@pytest.mark.django_db(transaction=True)
def test_no_run_may_begin_inside_a_transaction():
    refuse_inside_transaction("this")
    with transaction.atomic(), pytest.raises(UnsafeContext, match="this must not"):
        refuse_inside_transaction("this")


@pytest.mark.django_db
def test_djangos_own_test_case_is_no_such_transaction():
    assert connection.in_atomic_block
    refuse_inside_transaction("this")
    with transaction.atomic(), pytest.raises(UnsafeContext):
        refuse_inside_transaction("this")


@pytest.mark.django_db(transaction=True)
def test_a_conflict_in_a_transactional_tool_runs_the_body_again_from_the_start(world):
    world.plan("book", raises(conflict()), raises(conflict()))
    turn = begin([BOOK])

    assert decide_and_resume(turn) == "completed"
    assert [group.name for group in Group.objects.all()] == ["row-0"]
    assert world.names() == ["book"]
    assert events(only(turn)) == ["raised", "approved", "resolved"]


@pytest.mark.django_db(transaction=True)
def test_a_transactional_tool_that_loses_every_conflict_is_tried_again_later(world):
    world.plan("book", *[raises(conflict())] * 4)
    turn = begin([BOOK])

    assert decide_and_resume(turn) == "ready"
    assert "Deadlock" in turn.last_error
    assert Group.objects.count() == 0
    assert only(turn).status == "decided"

    assert resume(turn) == "completed"
    assert Group.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_statement_of_its_own_is_tried_again_and_is_no_part_of_another():
    tries = []

    def work():
        assert not connection.in_atomic_block
        tries.append(1)
        if len(tries) < 3:
            raise conflict()
        return "done"

    assert run_alone(work) == "done"
    assert len(tries) == 3
    with (
        transaction.atomic(),
        pytest.raises(RuntimeError, match="cannot be part of a transaction"),
    ):
        run_alone(work)
    assert len(tries) == 3

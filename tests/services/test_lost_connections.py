"""What becomes of a transaction whose connection, or whose answer, is lost."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import (
    DatabaseError,
    IntegrityError,
    OperationalError,
    connection,
    transaction,
)

from hitl_approvals import tool
from hitl_approvals.exceptions import UnsafeContext
from hitl_approvals.registry import registry
from hitl_approvals.services import transactions
from hitl_approvals.services.transactions import (
    may_be_refused,
    refuse_inside_transaction,
    run_alone,
    run_atomic,
)
from tests.support.agents import call
from tests.support.turns import begin, decide_and_resume, events, only, resume, steps
from tests.support.world import acts_then

pytestmark = pytest.mark.django_db(transaction=True)

PAY = call("pay", "p", order="1", amount="1")
NOTE = call("note", "n", text="x")


@pytest.fixture(autouse=True)
def no_waiting(transactional_db, monkeypatch):
    monkeypatch.setattr(transactions.time, "sleep", lambda seconds: None)
    yield
    # Whatever a test left of it.
    connection.close()


@pytest.fixture
def by_hand(no_waiting):
    """A caller that commits by itself, without `atomic()`."""
    transaction.set_autocommit(False)
    yield
    transaction.rollback()
    transaction.set_autocommit(True)


def conflict() -> OperationalError:
    return OperationalError(1213, "Deadlock found")


def gone() -> OperationalError:
    return OperationalError("server closed the connection unexpectedly")


def lose_the_connection() -> None:
    """Do what a server does that restarts, or a router that forgets who was idle."""
    connection.ensure_connection()
    raw = connection.connection
    # MariaDB's driver tells what it closed itself from what was closed on it.
    getattr(raw, "_force_close", raw.close)()


def names() -> list[str]:
    return sorted(Group.objects.values_list("name", flat=True))


def losing(tries: list[Any], *, times: int = 1) -> Any:
    """Return work that loses the connection in its first attempts."""

    def work():
        tries.append(True)
        Group.objects.create(name=f"try {len(tries)}")
        if len(tries) <= times:
            lose_the_connection()
            raise gone()
        return "done"

    return work


def test_what_was_not_committed_is_done_anew_on_another_connection():
    tries = []

    assert run_atomic(losing(tries)) == "done"
    assert names() == ["try 2"]


def test_work_that_loses_each_connection_is_not_begun_for_ever():
    tries = []

    with pytest.raises(OperationalError):
        run_atomic(losing(tries, times=5))

    assert len(tries) == 2
    assert names() == []


def test_a_connection_that_was_lost_before_is_replaced():
    lose_the_connection()

    run_atomic(lambda: Group.objects.create(name="there"))

    assert names() == ["there"]


def test_a_transaction_that_cannot_begin_is_begun_on_another_connection(monkeypatch):
    real, failures = connection.set_autocommit, [gone()]
    connection.ensure_connection()

    def set_autocommit(autocommit, **options):
        if failures and not autocommit:
            lose_the_connection()
            raise failures.pop()
        real(autocommit, **options)

    monkeypatch.setattr(connection, "set_autocommit", set_autocommit)

    run_atomic(lambda: Group.objects.create(name="there"))

    assert names() == ["there"]


def test_a_transaction_that_somebody_began_by_sql_is_not_thrown_away():
    """Whether it can be joined is the driver's business; it is no lost connection."""
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
    try:
        Group.objects.create(name="theirs")
        with suppress(DatabaseError):
            run_atomic(lambda: Group.objects.create(name="ours"))
        assert "theirs" in names()
    finally:
        # None is open where the driver let it be joined, and with it be committed.
        with suppress(DatabaseError), connection.cursor() as cursor:
            cursor.execute("ROLLBACK")


def test_a_database_that_stays_away_is_not_asked_again_and_again(monkeypatch):
    tried = []

    def connect():
        tried.append(True)
        raise gone()

    lose_the_connection()
    monkeypatch.setattr(connection, "connect", connect)

    with pytest.raises(OperationalError):
        run_atomic(lambda: Group.objects.create(name="there"))
    monkeypatch.undo()
    assert len(tried) <= 2


def test_a_commit_whose_answer_is_lost_is_not_done_twice(monkeypatch):
    tries, real = [], connection._commit

    def commit():
        real()
        lose_the_connection()
        raise gone()

    monkeypatch.setattr(connection, "_commit", commit)

    def work():
        tries.append(True)
        Group.objects.create(name=f"try {len(tries)}")

    with pytest.raises(OperationalError):
        run_atomic(work)
    monkeypatch.undo()
    assert names() == ["try 1"]


def test_a_statement_whose_answer_is_lost_is_not_sent_twice():
    tries = []

    def work():
        tries.append(True)
        Group.objects.create(name=f"try {len(tries)}")
        raise gone()

    with pytest.raises(OperationalError):
        run_alone(work)
    assert names() == ["try 1"]


def test_a_conflict_after_the_commit_is_not_taken_for_one_before():
    """Whoever waits for the commit may write too, and lose a conflict of its own."""
    tries = []

    def fail():
        raise conflict()

    def work():
        tries.append(True)
        Group.objects.create(name=f"try {len(tries)}")
        transaction.on_commit(fail)

    with pytest.raises(OperationalError):
        run_atomic(work)
    assert names() == ["try 1"]


def test_the_connection_of_a_callers_transaction_is_left_to_the_caller():
    tries = []

    with pytest.raises(OperationalError), transaction.atomic():
        run_atomic(losing(tries))

    assert len(tries) == 1
    connection.close()
    assert names() == []


@pytest.mark.parametrize("one", [PAY, NOTE], ids=["approved", "free"])
def test_a_call_during_which_the_connection_is_lost_is_recorded(world, one):
    world.plan(one["name"], acts_then(lose_the_connection))
    turn = begin([one])
    if turn.status == "suspended":
        decide_and_resume(turn)
        assert events(only(turn)) == ["raised", "approved", "resolved"]

    turn.refresh_from_db()
    assert turn.status == "completed"
    assert [step.status for step in steps(turn)] == ["succeeded"]
    assert len(world.effects) == 1


def test_the_body_of_a_transactional_tool_runs_again_and_is_kept_once(world):
    world.plan("book", acts_then(lose_the_connection))
    turn = begin([call("book", "b", name="row")])

    assert decide_and_resume(turn) == "completed"
    assert names() == ["row-0"]


def test_a_body_that_runs_again_is_given_what_was_approved(world, monkeypatch):
    """And not what it made of its arguments before."""

    @tool(name="enroll", effect="transactional")
    def enroll(people: list[str]) -> str:
        """Make a row for each of them, and one for all."""
        people.append("all of " + "-".join(people))
        for one in people:
            Group.objects.create(name=one)
        return str(world.act("enroll", people=people))

    known = registry.agents["scripted"]
    tools = {**known.tools, "enroll": enroll}
    monkeypatch.setitem(registry.agents, "scripted", replace(known, tools=tools))
    world.plan("enroll", acts_then(lose_the_connection))
    turn = begin([call("enroll", "e", people=["a", "b"])])

    assert decide_and_resume(turn) == "completed"
    assert names() == ["a", "all of a-b", "b"]


def test_a_transactional_tool_that_is_committed_never_runs_again(world):
    def fail():
        raise conflict()

    world.plan("book", acts_then(lambda: transaction.on_commit(fail)))
    turn = begin([call("book", "b", name="row")])

    assert decide_and_resume(turn) == "ready"
    assert resume(turn) == "completed"
    assert names() == ["row-0"]
    assert world.names() == ["book"]


def test_a_caller_that_commits_by_hand_has_a_transaction(by_hand):
    with pytest.raises(UnsafeContext, match="this must not"):
        refuse_inside_transaction("this")
    with pytest.raises(RuntimeError, match="cannot be part of a transaction"):
        run_alone(lambda: None)
    with pytest.raises(RuntimeError, match="cannot be part of another"):
        run_atomic(lambda: None, durable=True)


def test_part_of_a_transaction_that_is_committed_by_hand_is_never_tried_again(by_hand):
    tries = []

    def work():
        tries.append(True)
        raise conflict()

    with pytest.raises(OperationalError):
        run_atomic(work)
    assert len(tries) == 1


def test_a_refusal_spoils_no_transaction_that_is_committed_by_hand(by_hand):
    Group.objects.create(name="one")
    with pytest.raises(IntegrityError), may_be_refused():
        Group.objects.create(name="one")
    Group.objects.create(name="two")
    transaction.commit()

    assert names() == ["one", "two"]

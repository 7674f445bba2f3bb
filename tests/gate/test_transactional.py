"""A transactional tool: effect and record are one commit, or nothing happened."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connections, transaction

from hitl_approvals import Edit, ToolFailed, ToolNotStarted
from hitl_approvals.models import AgentTurn, PendingInterrupt, TurnStep
from tests.support.agents import CardDeclined, call
from tests.support.turns import (
    begin,
    decide,
    decide_and_resume,
    events,
    only,
    pass_execute_by,
    recover,
    resume,
    rows,
    step_statuses,
    steps,
    waiting,
)
from tests.support.world import Crash, acts_then, raises, returns

pytestmark = pytest.mark.django_db
BOOK = call("book", "b", name="row")


def test_effect_and_record_are_there_together(world):
    turn = begin([BOOK])

    assert decide_and_resume(turn) == "completed"
    assert Group.objects.count() == 1
    row = only(turn)
    assert (row.status, row.outcome_status) == ("resolved", "succeeded")
    assert events(row) == ["raised", "approved", "resolved"]
    (step,) = steps(turn)
    assert (step.status, step.mode, step.result) == (
        "succeeded",
        "transactional",
        {"effect": 1},
    )


def test_an_edit_runs_the_edited_arguments(world):
    turn = begin([BOOK])

    decide_and_resume(turn, Edit({"name": "other"}))

    assert [group.name for group in Group.objects.all()] == ["other-0"]


def test_nothing_is_visible_as_started_while_the_body_runs(world):
    seen = []
    world.plan("book", acts_then(lambda: seen.append(TurnStep.objects.count())))
    turn = begin([BOOK])
    before = TurnStep.objects.count()

    decide_and_resume(turn)

    assert seen == [before]
    assert step_statuses(turn) == ["succeeded"]


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (ToolFailed("sold out"), "sold out"),
        (CardDeclined("no money"), "no money"),
        (ValueError("secret detail"), "(ValueError)"),
        (IntegrityError("secret detail"), "(IntegrityError)"),
    ],
)
def test_an_error_rolls_everything_back_and_the_model_is_told(world, error, word):
    world.plan("book", raises(error))
    turn = begin([BOOK])

    assert decide_and_resume(turn) == "completed"
    assert Group.objects.count() == 0
    row = only(turn)
    assert (row.status, row.outcome_status) == ("resolved", "failed")
    assert events(row) == ["raised", "approved", "resolved"]
    (step,) = steps(turn)
    assert (step.status, step.error) == ("failed", f"{type(error).__name__}: {error}")
    (told,) = turn.output
    assert told["status"] == "error"
    assert word in told["content"]
    assert "secret" not in told["content"]
    assert len(world.model_calls) == 2


def test_a_failed_call_is_not_tried_again(world):
    world.plan("book", raises(ValueError("once")))
    turn = begin([BOOK], [call("mail", "m", to="a")])
    decide_and_resume(turn)
    decide_and_resume(turn)

    assert turn.status == "completed"
    assert Group.objects.count() == 0
    assert world.names() == ["mail"]


def test_a_call_that_never_left_is_tried_again(world):
    world.plan("book", raises(ToolNotStarted("the lock is taken")))
    turn = begin([BOOK])

    assert decide_and_resume(turn) == "ready"
    assert Group.objects.count() == 0
    assert only(turn).status == "decided"
    assert "ToolNotStarted: the lock is taken" in turn.last_error

    assert resume(turn) == "completed"
    assert Group.objects.count() == 1
    assert events(only(turn)) == ["raised", "approved", "resolved"]
    assert step_statuses(turn) == ["succeeded"]


def test_a_body_that_marks_its_transaction_for_rollback_failed_cleanly(world):
    world.plan("book", acts_then(lambda: transaction.set_rollback(True)))
    turn = begin([BOOK])

    assert decide_and_resume(turn) == "completed"
    assert Group.objects.count() == 0
    assert step_statuses(turn) == ["failed"]
    assert only(turn).outcome_status == "failed"


def test_a_result_that_is_no_json_undoes_the_effect(world):
    world.plan("book", returns(float("nan")))
    turn = begin([BOOK])

    assert decide_and_resume(turn) == "completed"
    assert Group.objects.count() == 0
    assert only(turn).outcome_status == "failed"


def test_a_crash_in_the_body_leaves_nothing_and_then_it_runs_once(world):
    def die():
        raise Crash

    world.plan("book", acts_then(die))
    turn = begin([BOOK])
    with pytest.raises(Crash):
        decide_and_resume(turn)
    assert Group.objects.count() == 0
    assert steps(turn) == []

    assert recover(turn) == "completed"
    assert Group.objects.count() == 1
    assert events(only(turn)) == ["raised", "approved", "resolved"]


def test_a_crash_after_the_commit_runs_nothing_again(world, make_agent):
    deaths = [Crash()]

    def mortal(turn, given):
        turn.call_tools([BOOK])
        if deaths:
            raise deaths.pop()

    turn = begin(agent=make_agent(mortal))
    with pytest.raises(Crash):
        decide_and_resume(turn)
    assert Group.objects.count() == 1

    assert recover(turn) == "completed"
    assert Group.objects.count() == 1


def test_a_body_whose_turn_is_taken_meanwhile_is_undone(world):
    turn = begin([BOOK])

    def another_takes_it():
        AgentTurn.objects.filter(pk=turn.pk).update(fence=99)
        PendingInterrupt.objects.filter(turn=turn).update(generation=2, revision=9)

    world.plan("book", acts_then(another_takes_it))
    outcome = decide_and_resume(turn)

    # One transaction: what the other one wrote inside it is undone as well.
    assert outcome == "lost"
    assert Group.objects.count() == 0
    assert only(turn).status == "decided"
    assert recover(turn) == "completed"
    assert Group.objects.count() == 1


def test_a_lapsed_approval_starts_no_body(world):
    turn = begin([BOOK])
    row = only(turn)
    decide(row)
    pass_execute_by(row)

    assert resume(turn) == "suspended"
    assert Group.objects.count() == 0
    assert [one.status for one in waiting(turn)] == ["pending"]
    assert events(row) == ["raised", "approved", "lapsed"]


def test_siblings_of_a_failed_transaction_run(world):
    world.plan("book", raises(ValueError("no")))
    turn = begin([BOOK, call("book", "c", name="next"), call("mail", "m", to="a")])

    assert decide_and_resume(turn) == "completed"
    assert [group.name for group in Group.objects.all()] == ["next-0"]
    assert world.names() == ["book", "mail"]
    assert [row.outcome_status for row in rows(turn)] == [
        "failed",
        "succeeded",
        "succeeded",
    ]


@pytest.fixture
def second_database(db, monkeypatch, tmp_path):
    """Another alias: a database that is no part of the tool's transaction."""
    file = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "other")}
    made = connections.configure_settings({"default": {}, "elsewhere": file})
    connections.settings["elsewhere"] = made["elsewhere"]
    connection = connections["elsewhere"]
    try:
        # Django's test case knows only the aliases of the settings, and forbids others.
        monkeypatch.setattr(connection, "ensure_connection", lambda: None)
        connection.connect()
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE thing (name TEXT)")
        yield connection
        connection.close()
    finally:
        del connections["elsewhere"]
        del connections.settings["elsewhere"]


def things(connection):
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM thing")
        return cursor.fetchone()[0]


def test_a_write_to_another_database_fails_the_call_and_undoes_it(
    world, second_database
):
    def write():
        with second_database.cursor() as cursor:
            cursor.execute("INSERT INTO thing VALUES ('x')")

    world.plan("book", acts_then(write))
    turn = begin([BOOK])

    assert decide_and_resume(turn) == "completed"
    assert things(second_database) == 0
    assert Group.objects.count() == 0
    (step,) = steps(turn)
    assert step.status == "failed"
    assert "`elsewhere`" in step.error


def test_reading_from_another_database_is_allowed(world, second_database):
    seen = []
    world.plan("book", acts_then(lambda: seen.append(things(second_database))))
    turn = begin([BOOK])

    assert decide_and_resume(turn) == "completed"
    assert seen == [0]
    assert Group.objects.count() == 1


def test_an_unsafe_tool_may_write_where_it_likes(world, second_database):
    def write():
        with second_database.cursor() as cursor:
            cursor.execute("INSERT INTO thing VALUES ('x')")

    world.plan("mail", acts_then(write))
    turn = begin([call("mail", "m", to="a")])

    assert decide_and_resume(turn) == "completed"
    assert things(second_database) == 1

"""Statements that are compiled once say what Django's own queries say."""

from __future__ import annotations

import gc
import threading
import weakref
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, connections, transaction
from django.db.models import (
    DateTimeField,
    Exists,
    F,
    Field,
    OuterRef,
    Q,
    QuerySet,
)
from django.test.utils import CaptureQueriesContext

from hitl_approvals import statements
from hitl_approvals.enums import StepKind, StepStatus, TurnStatus
from hitl_approvals.models import (
    AgentTurn,
    DbNow,
    ReviewQueue,
    TurnStep,
    db_now_plus,
)
from hitl_approvals.services import rows
from hitl_approvals.statements import inserting, kept

pytestmark = [pytest.mark.django_db, pytest.mark.breaks_invariants]
HOUR = timedelta(hours=1)


def turn(**columns: Any) -> AgentTurn:
    thread = uuid4().hex
    given = {"agent": "a", "next_run_at": DbNow(), **columns}
    return AgentTurn(thread_id=thread, thread_key=thread, **given)


@pytest.fixture
def turns() -> list[AgentTurn]:
    """Turns of which each differs from the next, and nothing that was compiled."""
    kept.of(connections["default"]).clear()
    made = [
        turn(agent="a", attempts=1, start_key="one", input={"n": 1}),
        turn(agent="b", attempts=2, blocked=True, execute_options=[1, 2]),
        turn(agent="a", attempts=7, max_attempts=5, next_run_at=db_now_plus(HOUR)),
        turn(agent="c", agent_version="2", next_run_at=db_now_plus(-HOUR)),
    ]
    AgentTurn.objects.bulk_create(made)
    return list(AgentTurn.objects.order_by("pk"))


def shapes() -> int:
    return len(kept.of(connections["default"]))


CONDITIONS = [
    pytest.param((), {"agent": "a"}, id="a value"),
    pytest.param((), {"agent": "a", "attempts": 7}, id="two"),
    pytest.param((), {"blocked": True}, id="true"),
    pytest.param((), {"blocked": False}, id="false"),
    pytest.param((), {"start_key": None}, id="none"),
    pytest.param((), {"start_key__isnull": False}, id="not null"),
    pytest.param((), {"attempts__lt": F("max_attempts")}, id="another column"),
    pytest.param((), {"next_run_at__lte": DbNow()}, id="the clock"),
    pytest.param((), {"next_run_at__gt": db_now_plus(HOUR / 2)}, id="half an hour on"),
    pytest.param((), {"agent__in": ["a", "c"]}, id="some of"),
    pytest.param((), {"agent__in": []}, id="none of"),
    pytest.param((Q(agent="b") | Q(agent="c"),), {}, id="or"),
    pytest.param((~Q(agent="a"),), {"attempts__gte": 0}, id="not"),
    pytest.param((~Q(agent__in=[None, "a"]),), {}, id="not one of, nor NULL"),
    pytest.param((~Q(agent__in=[None]),), {}, id="not one of nothing"),
    pytest.param((Q(agent="b") | Q(Q(agent="a") & ~Q(attempts=1)),), {}, id="nested"),
    pytest.param((Q(pk__in=[]) | Q(agent="a"),), {}, id="or nothing"),
    pytest.param((Q(agent="a"), Q(start_key="one")), {"attempts": 1}, id="several"),
]


@pytest.mark.parametrize(("conditions", "lookups"), CONDITIONS)
def test_the_same_rows_are_found_as_by_filter(turns, conditions, lookups):
    expected = AgentTurn.objects.filter(*conditions, **lookups).order_by("pk")
    asked = rows.where(AgentTurn, *conditions, **lookups)

    for _time in range(2):
        found = asked.read(_by_key)
        assert [vars_of(one) for one in found] == [vars_of(one) for one in expected]


@pytest.mark.parametrize(("conditions", "lookups"), CONDITIONS)
def test_the_same_rows_are_changed_as_by_filter(turns, conditions, lookups):
    expected = set(
        AgentTurn.objects.filter(*conditions, **lookups).values_list("pk", flat=True)
    )

    changed = rows.where(AgentTurn, *conditions, **lookups).update(error="changed")

    assert changed == len(expected)
    touched = AgentTurn.objects.filter(error="changed").values_list("pk", flat=True)
    assert set(touched) == expected


def vars_of(turn: AgentTurn) -> dict[str, Any]:
    return {k: v for k, v in vars(turn).items() if k != "_state"}


def _by_key(found: QuerySet[AgentTurn]) -> QuerySet[AgentTurn]:
    return found.order_by("pk")


def _keys(found: QuerySet[AgentTurn]) -> QuerySet[AgentTurn, Any]:
    return found.order_by("pk").values_list("pk", flat=True)


def _timed(found: QuerySet[AgentTurn]) -> QuerySet[Any]:
    return found.annotate(db_now=DbNow()).select_related("parent")


def test_other_values_use_the_text_that_was_compiled(turns):
    for one in turns:
        assert rows.where(AgentTurn, pk=one.pk, attempts=one.attempts).read() == [one]
        rows.where(AgentTurn, pk=one.pk).update(attempts=F("attempts") + 1, error="x")

    assert shapes() == 2


def test_none_true_and_lists_of_another_length_are_other_shapes(turns):
    counted = []
    for lookups in (
        {"start_key": "one"},
        {"start_key": "two"},
        {"start_key": None},
        {"blocked": True},
        {"blocked": False},
        {"agent__in": ["a"]},
        {"agent__in": ["b"]},
        {"agent__in": ["a", "b"]},
    ):
        rows.where(AgentTurn, **lookups).read()
        counted.append(shapes())

    assert counted == [1, 1, 2, 3, 4, 5, 5, 6]


def test_the_time_from_now_is_a_value_like_any_other(turns):
    one = turns[0].pk
    for span in (HOUR, timedelta(days=400), timedelta(seconds=-1, microseconds=7)):
        rows.where(AgentTurn, pk=one).update(next_run_at=db_now_plus(span))
        (row,) = AgentTurn.objects.filter(pk=one).annotate(db_now=DbNow())
        late = row.db_now + span - row.next_run_at
        assert timedelta() <= late < timedelta(seconds=30)

    assert shapes() == 1


def test_a_row_is_there_or_not(turns):
    first, second, *_rest = turns
    TurnStep.objects.create(
        turn=first,
        key="k",
        position=1,
        kind=StepKind.MODEL,
        name="n",
        status=StepStatus.SUCCEEDED,
    )

    def changed(key: str, turn: AgentTurn) -> int:
        there = rows.where(TurnStep, turn=turn.pk, key=key).there()
        return rows.where(AgentTurn, there, pk=turn.pk).update(error="there")

    assert [changed("k", first), changed("k", second), changed("x", first)] == [1, 0, 0]
    assert shapes() == 1


def test_related_rows_and_the_clock_come_with_a_row(turns):
    parent, child, *_rest = turns
    rows.where(AgentTurn, pk=child.pk).update(parent=parent)

    found = rows.where(AgentTurn, pk=child.pk).first(_timed)
    alone = rows.where(AgentTurn, pk=parent.pk).first(_timed)

    with CaptureQueriesContext(connection) as queries:
        assert found.parent == parent
        assert found.parent.input == parent.input
        assert alone.parent is None
    assert not queries.captured_queries
    assert found.db_now - found.created_at < HOUR
    assert not found._state.adding


def test_columns_that_are_left_out_come_when_asked_for(turns):
    parent, child, *_rest = turns
    rows.where(AgentTurn, pk=child.pk).update(parent=parent)

    found = rows.where(AgentTurn, pk=child.pk).first(_narrow)

    with CaptureQueriesContext(connection) as queries:
        assert (found.agent, found.execute_options) == ("b", [1, 2])
        assert (found.parent.agent, found.parent.attempts) == ("a", 1)
    assert not queries.captured_queries
    assert (found.attempts, found.parent.input) == (2, {"n": 1})


def _narrow(found: QuerySet[AgentTurn]) -> QuerySet[AgentTurn]:
    related = found.select_related("parent")
    return related.defer("attempts", "parent__input", "parent__agent_version")


def test_keys_come_as_they_are_and_as_many_as_wanted(turns):
    keys = [one.pk for one in turns]
    all_ = rows.where(AgentTurn)

    assert all_.read(_keys) == keys
    assert all_.read(_keys, limit=2) == keys[:2]
    assert all_.read(_keys, limit=3) == keys[:3]
    assert all_.first(_keys) == keys[0]
    assert rows.where(AgentTurn, agent="nobody").first(_keys) is None


def test_a_person_stands_for_its_key(turns):
    person = User.objects.create_user("rita")

    for who in (person, None, person):
        rows.where(AgentTurn, pk=turns[0].pk).update(requested_by=who)
        turns[0].refresh_from_db()
        assert turns[0].requested_by == who


def test_a_person_who_is_not_stored_is_refused(turns):
    with pytest.raises(ValueError, match="Unsaved"):
        rows.where(AgentTurn, pk=turns[0].pk).update(requested_by=User())


def test_a_key_that_is_none_is_refused_as_by_filter(turns):
    for _time in range(2):
        with pytest.raises(ValidationError):
            rows.where(AgentTurn, pk="no key").read()


def test_what_asks_for_another_table_is_refused(turns):
    with pytest.raises(TypeError, match="parent__agent asks more"):
        rows.where(AgentTurn, parent__agent="a").read()


def test_an_expression_is_no_condition(turns):
    there = Exists(TurnStep.objects.filter(turn=OuterRef("pk")))
    with pytest.raises(TypeError, match="no condition that is compiled once"):
        rows.where(AgentTurn, Q(there)).read()


def test_an_expression_in_a_list_is_refused(turns):
    with pytest.raises(TypeError, match="stands in a list"):
        rows.where(AgentTurn, agent__in=["a", F("agent_version")]).read()


@pytest.mark.django_db(transaction=True)
def test_more_rows_than_one_statement_takes_are_inserted_all_or_none(turns):
    new = [turn() for _one in range(inserting.AT_ONCE * 2)]
    new[-1].start_key = "one"

    with pytest.raises(IntegrityError):
        rows.insert(new)

    assert AgentTurn.objects.count() == len(turns)


def test_conditions_that_nothing_can_fulfill_send_nothing(turns):
    with CaptureQueriesContext(connection) as queries:
        assert rows.where(AgentTurn, pk__in=[]).update(error="x") == 0
        assert rows.where(AgentTurn, pk__in=[]).read() == []

    assert not queries.captured_queries


def test_a_refused_change_spoils_the_transaction_as_djangos_own(turns):
    def twice() -> None:
        rows.where(AgentTurn, pk=turns[1].pk).update(start_key="one")

    with pytest.raises(IntegrityError), transaction.atomic():
        twice()
    with transaction.atomic():
        with pytest.raises(IntegrityError):
            twice()
        assert connection.needs_rollback


@pytest.mark.parametrize("number", [1, 2, inserting.AT_ONCE, inserting.AT_ONCE + 3])
def test_rows_are_inserted_with_what_the_database_works_out(turns, number):
    new = [turn(agent=f"new {n}", input={"n": n}) for n in range(number)]
    new[-1].next_run_at = db_now_plus(HOUR)

    rows.insert(new)

    for one in new:
        stored = AgentTurn.objects.get(pk=one.pk)
        assert vars_of(stored) == vars_of(one)
        assert not one._state.adding
        assert one._state.db == "default"
    assert new[-1].next_run_at - new[-1].created_at > HOUR / 2


def test_the_second_insert_of_a_kind_compiles_nothing(turns):
    rows.insert([turn(agent="x", start_key="j", input={}, attempts=1)])
    before = shapes()
    rows.insert([turn(agent="y", start_key="k", input=[1], attempts=3)])

    assert shapes() == before


def test_columns_that_hold_their_default_are_written_without_their_values(turns):
    """Each of these takes the place of a default, and is not one or looks like one."""
    kept.of(connections["default"]).clear()
    columns: list[dict[str, Any]] = [
        {},
        {"attempts": 3, "error": "x", "blocked": True, "start_key": "k"},
        {"attempts": 0, "error": "", "blocked": False, "start_key": None},
        {"input": False},
        {"input": 0},
        {"input": ""},
        {"input": []},
        {"attempts": False, "agent_version": "".join("1")},
    ]
    new = [turn(**one) for one in columns]

    for one in new:
        rows.insert([one])

    for one in new:
        stored = AgentTurn.objects.get(pk=one.pk)
        assert vars_of(stored) == vars_of(one)
        assert type(stored.input) is type(one.input)
    # As by default, two with the same columns and others, and four with an input.
    assert shapes() == 4


def test_a_column_that_stays_empty_is_not_named(turns):
    with CaptureQueriesContext(connection) as queries:
        rows.insert([turn(), turn()])
        rows.insert([turn(), turn(start_key="k")])

    neither, one_of_two = (query["sql"] for query in queries.captured_queries)
    assert "start_key" not in neither
    assert "start_key" in one_of_two
    assert AgentTurn.objects.filter(start_key="k").count() == 1


@pytest.mark.parametrize("column", ["created_at", "thread_id", "attempts"])
def test_a_column_that_must_not_be_empty_is_refused_as_by_django(turns, column):
    """One with the database's default, one without any, one with ours."""
    new = turn()
    setattr(new, column, None)

    with pytest.raises(IntegrityError), transaction.atomic():
        rows.insert([new])


@pytest.mark.parametrize("model", [*apps.get_app_config("hitl_approvals").get_models()])
def test_no_column_of_ours_is_worked_out_on_saving(model):
    """What is inserted is what the row's attributes hold."""
    for field in model._meta.local_concrete_fields:
        assert type(field).pre_save in (Field.pre_save, DateTimeField.pre_save)
        assert not getattr(field, "auto_now", False)
        assert not getattr(field, "auto_now_add", False)


def test_nothing_to_insert_is_no_statement(turns):
    with CaptureQueriesContext(connection) as queries:
        rows.insert([])

    assert not queries.captured_queries


def test_a_row_that_is_there_is_refused(turns):
    with pytest.raises(IntegrityError), transaction.atomic():
        rows.insert([turn(start_key="one")])

    assert AgentTurn.objects.count() == len(turns)


def test_where_an_insert_returns_nothing_the_row_is_read_back(turns, monkeypatch):
    features = connection.features
    for name in ("can_return_rows_from_bulk_insert", "can_return_columns_from_insert"):
        monkeypatch.setattr(type(features), name, False)
    new = [turn(agent="x"), turn(agent="y", next_run_at=None, status="completed")]
    new[1].finished_at = DbNow()

    rows.insert(new)

    monkeypatch.undo()
    for one in new:
        assert vars_of(AgentTurn.objects.get(pk=one.pk)) == vars_of(one)


def test_only_so_many_shapes_are_kept(turns, monkeypatch):
    monkeypatch.setattr(kept, "MOST", 3)
    for length in range(1, 9):
        rows.where(AgentTurn, agent__in=["a"] * length).read()
        assert shapes() <= 3


def test_what_where_cannot_say_is_compiled_once_too(turns):
    slug = ReviewQueue._meta.get_field("slug")
    ReviewQueue.objects.create(slug="refunds")

    asked = [
        statements.ask("default", _named, (slug, name))
        for name in ("refunds", "nothing", "refunds")
    ]

    assert asked == [["refunds"], [], ["refunds"]]
    assert shapes() == 1


def _named(slug: Any) -> QuerySet[ReviewQueue, str]:
    return ReviewQueue.objects.filter(slug=slug).values_list("slug", flat=True)


@pytest.mark.django_db(transaction=True)
def test_each_thread_has_its_own_connection_and_its_own_statements(turns):
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(rows.where(AgentTurn, agent="b").read(_keys))
            found.append(rows.where(AgentTurn, agent="c").read(_keys))
        finally:
            connections.close_all()

    rows.where(AgentTurn, agent="a").read(_keys)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    by_agent = {one.agent: one.pk for one in turns}
    assert found == [[by_agent["b"]], [by_agent["c"]]]


@pytest.mark.django_db(transaction=True)
def test_the_connection_of_a_thread_that_ended_is_let_go(turns):
    found: list[Any] = []

    def work() -> None:
        assert rows.where(AgentTurn, agent="b", next_run_at__lt=DbNow()).read(_timed)
        rows.insert([turn()])
        found.append(weakref.ref(connections["default"]))
        assert len(kept.of(connections["default"])) == 2
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.collect()

    assert found[0]() is None


def test_a_claimed_status_is_a_word_and_not_an_enum_in_the_text(turns):
    rows.where(AgentTurn, status=TurnStatus.READY).update(last_error="seen")

    assert AgentTurn.objects.filter(last_error="seen").count() == len(turns)

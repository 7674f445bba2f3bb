"""The audit trail takes inserts and nothing else, whoever asks."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from hitl_approvals.models import AgentTurn, InterruptEvent, ReviewQueue
from tests.support.agents import call
from tests.support.turns import begin, decide_and_resume

TABLE = InterruptEvent._meta.db_table
MAIL = call("mail", "m", to="a")


def some_event():
    decide_and_resume(begin([MAIL]))
    return InterruptEvent.objects.order_by("at").first()


def refuse(work):
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        work()


def execute(sql, *params):
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


@pytest.mark.django_db
def test_an_event_cannot_be_changed_in_any_way(world):
    event = some_event()
    before = list(InterruptEvent.objects.order_by("pk").values())
    event.actor = "somebody else"

    refuse(lambda: InterruptEvent.objects.update(actor="somebody else"))
    refuse(event.save)
    refuse(lambda: InterruptEvent.objects.bulk_update([event], ["actor"]))
    refuse(lambda: execute(f"UPDATE {TABLE} SET actor = %s", "somebody else"))
    refuse(lambda: execute(f"UPDATE {TABLE} SET detail = NULL"))

    assert list(InterruptEvent.objects.order_by("pk").values()) == before


@pytest.mark.django_db
def test_an_event_cannot_be_deleted_on_postgresql(world):
    if connection.vendor != "postgresql":
        pytest.skip("elsewhere such a trigger would break Django's flush")
    event = some_event()
    count = InterruptEvent.objects.count()

    refuse(event.delete)
    refuse(lambda: InterruptEvent.objects.all().delete())
    refuse(lambda: execute(f"DELETE FROM {TABLE}"))

    assert InterruptEvent.objects.count() == count


@pytest.mark.django_db(transaction=True)
@pytest.mark.breaks_invariants
def test_pruning_is_allowed_for_one_transaction_that_says_so(world):
    if connection.vendor != "postgresql":
        pytest.skip("elsewhere nothing refuses a delete")
    event = some_event()
    count = InterruptEvent.objects.count()

    with transaction.atomic():
        execute("SET LOCAL hitl_approvals.prune = 'on'")
        event.delete()
        refuse(lambda: InterruptEvent.objects.update(actor="somebody else"))

    assert InterruptEvent.objects.count() == count - 1
    refuse(lambda: InterruptEvent.objects.all().delete())
    with transaction.atomic():
        execute("SET LOCAL hitl_approvals.prune = 'yes'")
        refuse(lambda: InterruptEvent.objects.all().delete())


@pytest.mark.django_db(transaction=True)
def test_flush_empties_every_table_and_leaves_the_default_queue(world):
    some_event()

    call_command("flush", interactive=False, verbosity=0)

    assert InterruptEvent.objects.count() == AgentTurn.objects.count() == 0
    assert [queue.slug for queue in ReviewQueue.objects.all()] == ["default"]
    event = some_event()
    refuse(lambda: InterruptEvent.objects.filter(pk=event.pk).update(actor="x"))


@pytest.mark.django_db(transaction=True)
def test_the_trigger_can_be_taken_away_and_comes_back(world):
    call_command("migrate", "hitl_approvals", "0001", verbosity=0)
    call_command("migrate", "hitl_approvals", verbosity=0)

    event = some_event()

    refuse(lambda: InterruptEvent.objects.filter(pk=event.pk).update(actor="x"))

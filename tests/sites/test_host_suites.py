"""A site's own tests: Django's test cases, eager on_commit, flush, whatever the database."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test import TestCase, TransactionTestCase, override_settings

from hitl_approvals import Approve, resume, run_turn, services, start_turn
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from hitl_approvals.testing import run_owed
from tests.support.agents import call
from tests.support.turns import begin, decide, only
from tests.support.world import world

INLINE = override_settings(HITL_APPROVALS={"DISPATCHER": "inline"})


class TurnsInATestCase(TestCase):
    """`TestCase` wraps each test in a transaction; an agent may run in that one."""

    def setUp(self) -> None:
        world.reset()
        self.addCleanup(world.reset)

    def test_a_turn_runs_from_start_to_end(self) -> None:
        turn = start_turn("scripted", [[call("mail", to="a")]], run=True)
        row = PendingInterrupt.objects.get()

        services.decide(row.pk, Approve(), by=None, via="test")
        outcome = run_turn(turn.pk)

        assert outcome == "completed"
        assert world.names() == ["mail"]

    def test_a_transactional_tool_runs(self) -> None:
        turn = start_turn("scripted", [[call("book", name="x")]], run=True)

        applied: Any = resume(only(turn).pk, Approve())

        assert applied.status == "completed"

    def test_what_is_owed_can_be_run(self) -> None:
        turn = start_turn("scripted", [[call("mail", to="a")]])

        assert run_owed() == ["suspended"]
        decide(only(turn))
        assert run_owed() == ["completed"]

    def test_a_sweep_can_be_made(self) -> None:
        start_turn("scripted", [[call("mail", to="a")]], run=True)

        assert services.sweep().revoked == 0

    @INLINE
    def test_nothing_is_announced_before_a_commit_that_never_comes(self) -> None:
        start_turn("scripted", [[call("mail", to="a")]])

        assert AgentTurn.objects.get().status == "ready"

    @INLINE
    def test_captured_callbacks_run_the_turn_on(self) -> None:
        with self.captureOnCommitCallbacks(execute=True):
            turn = start_turn("scripted", [[call("mail", to="a")]])
        with self.captureOnCommitCallbacks(execute=True):
            decide(only(turn))

        turn.refresh_from_db()
        assert turn.status == "completed"
        assert world.names() == ["mail"]

    def test_a_transaction_of_ones_own_is_still_refused(self) -> None:
        with transaction.atomic(), self.assertRaisesMessage(Exception, "atomic()"):
            start_turn("scripted", [[call("mail", to="a")]], run=True)


class TurnsInATransactionTestCase(TransactionTestCase):
    """`TransactionTestCase` commits, and flushes every table afterwards."""

    def setUp(self) -> None:
        world.reset()
        self.addCleanup(world.reset)

    @INLINE
    def test_a_decision_runs_the_turn_on_at_once(self) -> None:
        turn = start_turn("scripted", [[call("mail", to="a")]])
        decide(only(turn))

        turn.refresh_from_db()
        assert turn.status == "completed"
        assert world.names() == ["mail"]

    def test_tables_are_empty_here_whoever_came_first(self) -> None:
        assert InterruptEvent.objects.count() == 0
        start_turn("scripted", [[call("mail", to="a")]], run=True)

    def test_and_here_too(self) -> None:
        assert InterruptEvent.objects.count() == 0
        start_turn("scripted", [[call("mail", to="a")]], run=True)


@pytest.mark.django_db(transaction=True)
def test_flush_empties_the_trail_and_the_triggers_stay() -> None:
    begin([call("mail", to="a")])

    call_command("flush", interactive=False, verbosity=0)

    assert InterruptEvent.objects.count() == 0
    begin([call("mail", to="a")])
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        InterruptEvent.objects.update(actor="somebody else")


@pytest.mark.django_db(transaction=True)
def test_deleting_events_is_refused_where_the_database_can() -> None:
    begin([call("mail", to="a")])

    if connection.vendor == "postgresql":
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            InterruptEvent.objects.all().delete()
        assert InterruptEvent.objects.count() == 1
    else:
        # There `flush` deletes row by row, and must be able to.
        with transaction.atomic():
            InterruptEvent.objects.all().delete()
            transaction.set_rollback(True)

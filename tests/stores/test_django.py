"""The store in the site's database keeps the contract, and what it adds to it."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.db import connection, connections, transaction

from hitl_approvals import (
    Approve,
    DjangoInterruptStore,
    Edit,
    Reject,
    services,
)
from hitl_approvals.exceptions import (
    AlreadyConsumed,
    AlreadyDecided,
    ClientNotAllowed,
    InterruptConflict,
    InterruptNotFound,
    PayloadRejected,
    ReviewerNotAllowed,
    SnapshotMismatch,
    TransitionNotAllowed,
)
from hitl_approvals.models import AgentClient, DbNow, PendingInterrupt
from hitl_approvals.services import clients
from hitl_approvals.stores.base import (
    InterruptStore,
    RecordingStore,
    ReleasingStore,
)
from hitl_approvals.testing import InterruptStoreContract
from hitl_approvals.testing.interrupt_store_harness import a_record, ids_of, new_id
from tests.support import remote
from tests.workspace import ROOT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]

SET_UP = f"""
import os
os.environ["DJANGO_SETTINGS_MODULE"] = {settings.SETTINGS_MODULE!r}
import django
django.setup()
from hitl_approvals import DjangoInterruptStore
store = DjangoInterruptStore()
"""


class TestDjango(InterruptStoreContract):
    def make_store(self):
        return DjangoInterruptStore()

    def in_another_process(self):
        return SET_UP

    def leave_thread(self):
        connections.close_all()

    def run_async(self, play):
        async def whole():
            try:
                await play()
            finally:
                await sync_to_async(connections.close_all)()

        asyncio.run(whole())


@pytest.fixture
def store():
    return DjangoInterruptStore()


def kept(store, **changes):
    record = a_record(**changes)
    store.save(record)
    return record


def row_of(record):
    return PendingInterrupt.objects.get(client_ref=record.interrupt_id)


def approved(store, **changes):
    record = kept(store, **changes)
    store.decide(record.interrupt_id, Approve())
    return record


def taken(store, *, key="k", **changes):
    record = approved(store, **changes)
    assert store.take(record.interrupt_id, key=key) is not None
    return record


def test_it_is_every_kind_of_store(store):
    for kind in (InterruptStore, RecordingStore, ReleasingStore):
        assert isinstance(store, kind)


# ids and rows


def test_a_uuid_is_the_rows_own_id_and_any_other_id_is_kept_beside_it(store):
    named, other = kept(store), kept(store, interrupt_id="order 7")
    upper = kept(store, interrupt_id=str(uuid.uuid4()).upper())

    assert str(row_of(named).pk) == named.interrupt_id == row_of(named).client_ref
    assert row_of(other).client_ref == "order 7"
    assert str(row_of(upper).pk) != upper.interrupt_id.lower()
    for record in (named, other, upper):
        assert store.load(record.interrupt_id).request == record.request
    services.decide(named.interrupt_id, Approve(), by=None, via="test")
    assert store.load(named.interrupt_id).decision == Approve()


def test_the_row_is_a_request_of_a_client_made_on_first_save(store):
    assert not AgentClient.objects.exists()
    assert store.list() == []
    assert store.load(new_id()) is None
    assert not AgentClient.objects.exists()

    record = kept(store)

    row = row_of(record)
    client = AgentClient.objects.get()
    assert (client.name, client.token_digest[0]) == ("interrupt-store", "!")
    assert (row.client, row.turn, row.kind) == (client, None, "tool_call")
    assert (row.tool_name, row.agent, row.thread_id) == (
        "issue_refund",
        "support",
        "thread 7",
    )
    assert row.context["asked"] == {"prompt": "Refund order A-1."}
    assert (row.policy["why"], row.tags) == ("The tool is on the list.", ["money"])
    assert row.allowed_decisions == ["approve", "edit", "reject"]
    assert remote.kinds(row) == ["raised"]


def test_stores_of_other_names_do_not_see_each_other():
    one, two = DjangoInterruptStore("one"), DjangoInterruptStore("two")
    record = kept(one, interrupt_id="same")
    kept(two, interrupt_id="same", tool_name="wire")

    assert one.load("same").request == record.request
    assert two.load("same").request.tool_name == "wire"
    assert ids_of(one.list()) == ids_of(two.list()) == {"same"}
    one.delete("same")
    assert two.load("same") is not None


def test_a_uuid_that_another_row_has_is_a_conflict():
    record = kept(DjangoInterruptStore("one"))

    with pytest.raises(InterruptConflict):
        DjangoInterruptStore("two").save(record)


def test_what_the_client_asks_without_a_store_is_none_of_the_stores(store):
    client = clients.ensure_client("interrupt-store")
    row = remote.ask(client, ref="by hand")

    assert store.load("by hand") is None
    assert store.list() == []
    assert store.take("by hand") is None
    with pytest.raises(InterruptConflict):
        kept(store, interrupt_id="by hand")
    store.delete("by hand")
    assert remote.fresh(row).status == "pending"


def test_a_prefix_tells_small_letters_from_capital_ones(store):
    kept(store, interrupt_id="Order 1")
    kept(store, interrupt_id="order 2")

    assert ids_of(store.list("o")) == {"order 2"}
    assert ids_of(store.list("O")) == {"Order 1"}


def test_queue_and_times_are_the_stores_own():
    store = DjangoInterruptStore(
        queue="nowhere",
        expires_in=timedelta(hours=1),
        execute_within=timedelta(minutes=5),
        outcome_within=timedelta(minutes=1),
    )

    row = row_of(taken(store))

    assert row.policy["queue_unknown"] == "nowhere"
    assert row.expires_at is not None
    assert (row.execute_by - row.decided_at).total_seconds() == pytest.approx(300, 0.1)
    assert (row.outcome_due - row.consumed_at).total_seconds() == pytest.approx(60, 0.1)


def test_a_schema_that_the_arguments_do_not_fit_is_no_ones_form(store):
    record = kept(store, args_schema={"type": "object", "required": ["missing"]})

    assert row_of(record).args_schema is None
    assert store.load(record.interrupt_id).request == record.request


def test_what_cannot_be_kept_is_refused(store):
    for bad in ("", "x" * 501, "a\x00b"):
        with pytest.raises(PayloadRejected):
            kept(store, interrupt_id=bad or " ")
        assert store.load(bad) is None
        assert store.list(bad) == []
    assert not PendingInterrupt.objects.exists()


# decisions


def test_a_decision_is_on_record_before_anybody_takes_it(store):
    record = kept(store)

    store.decide(record.interrupt_id, Edit({"amount": 5}, reason="less"))

    loaded = store.load(record.interrupt_id)
    assert (loaded.status, loaded.decision) == (
        "decided",
        Edit({"amount": 5}, reason="less"),
    )
    assert loaded.request == record.request
    with pytest.raises(AlreadyDecided):
        store.decide(record.interrupt_id, Approve())
    with pytest.raises(InterruptNotFound):
        store.decide(new_id(), Approve())
    got = store.take(record.interrupt_id, key="k")
    assert (got.status, got.decision) == ("taken", loaded.decision)


def test_rights_are_asked_of_who_decides(store):
    record = kept(store)
    viewer = User.objects.create_user("vera")
    viewer.user_permissions.add(
        Permission.objects.get(codename="view_pendinginterrupt")
    )

    with pytest.raises(ReviewerNotAllowed):
        store.decide(record.interrupt_id, Approve(), by=viewer)

    assert store.load(record.interrupt_id).status == "pending"


def test_a_key_that_no_column_holds_is_given_back_as_it_was(store):
    record = approved(store)

    got = store.take(record.interrupt_id, key="k" * 100)

    assert got.key == "k" * 100
    assert store.take(record.interrupt_id, key="k" * 100) == got
    store.report(record.interrupt_id, key="k" * 100, status="succeeded")


def test_nothing_is_taken_before_somebody_decided(store):
    record = kept(store)

    assert store.take(record.interrupt_id, key="k") is None

    assert row_of(record).consumed_at is None


def test_a_refusal_is_settled_by_being_taken(store):
    record = kept(store)
    store.decide(record.interrupt_id, Reject("no"))

    got = store.take(record.interrupt_id, key="k")

    assert (got.status, got.decision) == ("taken", Reject("no"))
    assert row_of(record).outcome_status == "refused"
    assert store.load(record.interrupt_id) is None
    assert store.take(record.interrupt_id, key="k") == got
    assert store.take(record.interrupt_id, key="other") is None


def test_what_nobody_decided_in_time_is_a_refusal(store):
    record = kept(store)
    remote.pass_time(row_of(record), "expires_at")
    services.sweep()

    assert store.load(record.interrupt_id).decision == Reject("Nobody decided in time.")
    assert store.take(record.interrupt_id) is not None
    assert row_of(record).outcome_status == "expired"


def test_a_late_approval_is_taken_by_nobody(store):
    record = approved(store)
    remote.pass_time(row_of(record), "execute_by")

    assert store.take(record.interrupt_id) is None
    services.sweep()
    assert store.load(record.interrupt_id) is None
    assert row_of(record).outcome_status == "lapsed"


@pytest.mark.breaks_invariants
def test_arguments_that_were_changed_are_not_given_out(store):
    record = approved(store)
    PendingInterrupt.objects.update(args_text='{"amount":999}')

    with pytest.raises(SnapshotMismatch):
        store.take(record.interrupt_id)


def test_a_revoked_client_asks_and_takes_nothing(store):
    record = approved(store)
    AgentClient.objects.update(revoked_at=DbNow())

    with pytest.raises(ClientNotAllowed):
        kept(store)
    with pytest.raises(ClientNotAllowed):
        store.take(record.interrupt_id)


# outcomes


@pytest.mark.parametrize(
    ("status", "outcome", "row_status"),
    [
        ("succeeded", {"id": 1}, "resolved"),
        ("failed", {"error": "declined"}, "resolved"),
        ("unknown", {"error": "timed out"}, "in_doubt"),
    ],
)
def test_what_came_of_it_is_recorded(store, status, outcome, row_status):
    record = taken(store)

    for _again in range(2):
        store.report(record.interrupt_id, key="k", status=status, outcome=outcome)

    row = row_of(record)
    assert row.status == row_status
    assert row.outcome == (None if row_status == "in_doubt" else outcome)
    note = remote.events(row)[-1].detail["note"]
    assert note == outcome.get("error", "")
    assert len(remote.kinds(row)) == 4


def test_a_result_that_cannot_be_stored_does_not_hide_that_it_ran(store):
    record = taken(store)

    store.report(
        record.interrupt_id, key="k", status="succeeded", outcome={"x": object()}
    )

    row = row_of(record)
    assert (row.status, row.outcome_status, row.outcome) == (
        "resolved",
        "succeeded",
        None,
    )
    assert "could not be stored" in remote.events(row)[-1].detail["note"]


def test_only_who_took_it_reports(store):
    record = approved(store)
    with pytest.raises(TransitionNotAllowed):
        store.report(record.interrupt_id, key="k", status="succeeded")
    store.take(record.interrupt_id, key="k")
    with pytest.raises(AlreadyConsumed):
        store.report(record.interrupt_id, key="other", status="succeeded")
    with pytest.raises(InterruptNotFound):
        store.report(new_id(), key="k", status="succeeded")


def test_what_was_settled_is_not_given_again_even_to_its_key(store):
    record = taken(store)
    store.report(record.interrupt_id, key="k", status="unknown")
    assert store.take(record.interrupt_id, key="k").status == "taken"

    services.settle(row_of(record).pk, "happened", by=None, via="test", result=1)

    assert store.take(record.interrupt_id, key="k") is None


# release


def test_an_unused_approval_is_released_by_its_key_only(store):
    record = taken(store)

    store.release(record.interrupt_id, key="other")
    assert store.load(record.interrupt_id).status == "taken"
    store.release(record.interrupt_id, key="k")

    left = store.load(record.interrupt_id)
    assert (left.status, left.decision, left.key) == ("decided", Approve(), None)
    assert store.take(record.interrupt_id, key="other").status == "taken"
    for done in (record.interrupt_id, new_id()):
        store.release(done, key="k")
    store.report(record.interrupt_id, key="other", status="unknown")
    store.release(record.interrupt_id, key="other")
    assert row_of(record).status == "in_doubt"


# delete


def test_what_was_withdrawn_does_not_come_back_by_its_id(store):
    record = kept(store)
    store.delete(record.interrupt_id)

    store.save(record)

    assert store.load(record.interrupt_id) is None
    assert row_of(record).outcome_status == "withdrawn"
    with pytest.raises(InterruptConflict):
        store.save(replace(record, request=replace(record.request, tool_name="wire")))


def test_what_somebody_took_cannot_be_forgotten(store):
    record = taken(store)

    with pytest.raises(AlreadyConsumed):
        store.delete(record.interrupt_id)

    store.report(record.interrupt_id, key="k", status="unknown")
    with pytest.raises(TransitionNotAllowed):
        store.delete(record.interrupt_id)
    services.settle(row_of(record).pk, "give_up", by=None, via="test")
    store.delete(record.interrupt_id)


# a process that dies


def test_an_approval_outlives_the_process_that_took_it_and_comes_to_a_person(store):
    record = approved(store)
    died = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{SET_UP}\n"
            f"found = store.take({record.interrupt_id!r}, key='theirs')\n"
            "assert found is not None\n"
            "import signal; os.kill(os.getpid(), signal.SIGKILL)",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr

    [left] = store.list()
    assert (left.status, left.key, left.decision) == ("taken", "theirs", Approve())
    assert store.take(record.interrupt_id, key="mine") is None
    assert store.take(record.interrupt_id, key="theirs") == left
    assert services.sweep().doubted == 0

    remote.pass_time(row_of(record), "outcome_due")
    assert services.sweep().doubted == 1

    row = row_of(record)
    assert row.status == "in_doubt"
    assert store.take(record.interrupt_id, key="mine") is None
    assert store.load(record.interrupt_id) == left
    services.settle(row.pk, "happened", by=None, via="test", result={"id": 1})
    assert store.list() == []
    assert remote.kinds(row) == [
        "raised",
        "approved",
        "consumed",
        "in_doubt",
        "settled_happened",
    ]


# schema


def test_the_schema_makes_the_tables(store):
    statements = [one for one in store.schema().split(";\n") if one.strip()]
    tables = ("pendinginterrupt", "agentclient", "reviewqueue", "interruptevent")
    for table in tables:
        assert any(
            one.lstrip().startswith("CREATE TABLE") and f"hitl_approvals_{table}" in one
            for one in statements
        ), table
    assert any("hitl_int_owner_check" in one for one in statements)
    assert any("CREATE INDEX" in one for one in statements)

    if connection.vendor == "sqlite":
        empty = sqlite3.connect(":memory:")
        empty.executescript(store.schema())
        assert empty.execute("SELECT count(*) FROM hitl_approvals_pendinginterrupt")
        empty.close()
    elif connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("CREATE SCHEMA scratch")
            cursor.execute("SET LOCAL search_path = scratch")
            for one in statements:
                cursor.execute(one)
            cursor.execute("SELECT count(*) FROM scratch.hitl_approvals_agentclient")
            assert cursor.fetchone() == (0,)
            transaction.set_rollback(True)


def test_the_schema_is_told_inside_a_transaction_too(store):
    with transaction.atomic():
        inside = store.schema()

    assert inside == store.schema()

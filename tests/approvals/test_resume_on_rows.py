"""Resuming over the site's own rows: all that the other stores do, and what they cannot.

The tests of the other stores are played on this one too, but for those in `DIFFERS`.
"""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections

from hitl_approvals import (
    AlreadyResolved,
    Approve,
    DjangoInterruptStore,
    Edit,
    InterruptSuspended,
    Reject,
    ToolFailed,
    approval,
    aresume,
    resume,
    services,
)
from hitl_approvals.models import PendingInterrupt
from tests.approvals import test_resume
from tests.approvals.test_resume import Bank, bank  # noqa: F401  a fixture
from tests.support import remote
from tests.workspace import ROOT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]

DIFFERS = {
    "test_a_run_that_fails_before_the_call_gives_the_claim_back",
    "test_the_bug_of_a_handler_leaves_the_resume_and_keeps_the_approval",
}
"""A claim that is given back leaves the row decided; the other stores know no decision."""

for _name, _test in vars(test_resume).items():
    if (
        _name.startswith("test_")
        and _name not in DIFFERS
        # What brings a store of its own says the same there.
        and {"bank", "store"} & set(inspect.signature(_test).parameters)
    ):
        globals()[_name] = _test


def test_what_differs_here_is_a_test_there():
    assert {name for name in DIFFERS if hasattr(test_resume, name)} == DIFFERS


class _Tidy(DjangoInterruptStore):
    """Leaves no connection open in the threads that the tests begin."""

    @property
    def _rows(self):
        return _Closing(super()._rows)


class _Closing:
    def __init__(self, rows):
        self._rows = rows

    def __getattr__(self, name):
        verb = getattr(self._rows, name)

        def call(*args, **options):
            try:
                return verb(*args, **options)
            finally:
                if threading.current_thread() is not threading.main_thread():
                    connections.close_all()

        return call


@pytest.fixture
def store():
    return _Tidy()


def row_of(waiting):
    return PendingInterrupt.objects.get(pk=waiting)


def test_it_is_approved_in_the_review_queue_and_resumed_elsewhere(bank, client):  # noqa: F811
    def agent(prompt):
        return bank.pay("ann", 7)

    waiting = bank.suspend(agent)
    User.objects.create_superuser("boss")
    client.force_login(User.objects.get())
    page = f"/admin/hitl_approvals/pendinginterrupt/{waiting}/"
    assert "pay" in client.get(f"{page}change/").content.decode()
    posted = {"decision": "approve", "revision": "1", "key": "k"}
    assert client.post(f"{page}decide/", posted).status_code == 302

    outcome = resume(waiting, None, store=bank.store, agent=agent)

    assert (outcome.status, outcome.result) == ("completed", "paid ann")
    assert bank.paid == [("ann", 7)]
    row = row_of(waiting)
    assert (row.decided_by_label, row.outcome_status) == ("boss", "succeeded")
    assert row.outcome == "paid ann"
    assert remote.kinds(row) == ["raised", "approved", "consumed", "resolved"]
    assert resume(waiting, None, store=bank.store) == AlreadyResolved(waiting)


def test_edit_and_refusal_are_on_the_row(bank):  # noqa: F811
    def agent(prompt):
        return bank.pay("ann")

    edited, refused = bank.suspend(agent), bank.suspend(agent)

    resume(edited, Edit({"to": "ben"}), store=bank.store, agent=agent)
    resume(refused, Reject("no"), store=bank.store, agent=agent)

    assert bank.paid == [("ben", 1)]
    assert row_of(edited).decision == "edit"
    assert row_of(edited).outcome_status == "succeeded"
    assert (row_of(refused).reason, row_of(refused).outcome_status) == (
        "no",
        "refused",
    )


def test_a_tool_that_failed_cleanly_and_one_that_did_not_are_told_apart(store):
    def clean(to: str) -> str:
        raise ToolFailed("declined")

    def unclean(to: str) -> str:
        raise TimeoutError("no answer")

    gate = approval(store=store)
    for tool, status in ((clean, "resolved"), (unclean, "in_doubt")):
        guarded = gate.wrap(tool)

        def agent(prompt, guarded=guarded):
            return guarded("ann")

        waiting = gate.execute(agent, "go").interrupt_id
        resume(waiting, Approve(), store=store, agent=agent)

        assert row_of(waiting).status == status, tool


def test_a_run_that_fails_before_the_call_gives_the_approval_back(bank):  # noqa: F811
    broken = []

    def agent(prompt):
        if broken:
            raise ConnectionError("no model")
        return bank.pay("ann")

    waiting = bank.suspend(agent)
    broken.append(1)

    outcome = resume(waiting, Approve(), store=bank.store, agent=agent)

    assert (outcome.status, outcome.used) == ("failed", False)
    left = bank.store.load(waiting)
    assert (left.status, left.decision, left.key) == ("decided", Approve(), None)
    assert remote.kinds(row_of(waiting))[-1] == "given_back"
    broken.clear()
    outcome = resume(waiting, None, store=bank.store, agent=agent)
    assert (outcome.status, bank.paid) == ("completed", [("ann", 1)])


def test_the_bug_of_a_handler_gives_the_approval_back_too(store):
    def handler(request):
        if request.args["to"] == "ben":
            raise InterruptSuspended(request.interrupt_id)

    bank = Bank(store, handler=handler)  # noqa: F811

    def agent(prompt):
        if prompt == "both":
            bank.pay("ann")
        return bank.pay("ben")

    waiting = bank.suspend(agent)

    with pytest.raises(TypeError, match="returned None"):
        resume(waiting, Approve(), store=store, agent=agent, input="both")

    assert store.load(waiting).status == "decided"
    resume(waiting, None, store=store, agent=agent)
    assert bank.paid == [("ben", 1)]


def test_apply_only_leaves_the_report_to_whoever_drives_the_turn(bank):  # noqa: F811
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))

    outcome = resume(waiting, Approve(), store=bank.store)

    taken = outcome.record
    assert (outcome.status, taken.decision) == ("claimed", Approve())
    assert row_of(waiting).status == "decided"
    bank.store.report(waiting, key=taken.key, status="succeeded", outcome="done")
    assert row_of(waiting).outcome == "done"


def test_the_async_resume_reports_too(bank):  # noqa: F811
    def agent(prompt):
        return bank.pay("ann")

    waiting = bank.suspend(agent)

    outcome = asyncio.run(aresume(waiting, Approve(), store=bank.store, agent=agent))

    assert outcome.status == "completed"
    assert row_of(waiting).outcome_status == "succeeded"


def test_a_process_that_dies_in_the_call_leaves_a_doubt_and_nothing_runs_twice(bank):  # noqa: F811
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))
    program = f"""
import os, signal
os.environ["DJANGO_SETTINGS_MODULE"] = {settings.SETTINGS_MODULE!r}
import django
django.setup()
from hitl_approvals import Approve, DjangoInterruptStore, approval, resume
store = DjangoInterruptStore()
gate = approval(store=store)
def pay(to: str, amount: int = 1) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
guarded = gate.wrap(pay)
resume({waiting!r}, Approve(), store=store, agent=lambda prompt: guarded("ann"))
"""

    died = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)

    assert died.returncode == -9
    [left] = bank.store.list()
    assert (left.status, left.decision) == ("taken", Approve())
    agent = bank.pay
    assert resume(waiting, Approve(), store=bank.store, agent=agent) == (
        AlreadyResolved(waiting)
    )
    remote.pass_time(row_of(waiting), "outcome_due")
    assert services.sweep().doubted == 1
    assert row_of(waiting).status == "in_doubt"
    assert resume(waiting, Approve(), store=bank.store, agent=agent) == (
        AlreadyResolved(waiting)
    )
    assert bank.paid == []

"""Who sends what is owed: Celery's task, hitl_worker, or whoever commits in tests."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import DatabaseError, InterfaceError

from hitl_approvals import delivering, dispatchers, services, tasks
from hitl_approvals.delivering import Deliverer
from hitl_approvals.dispatchers import celery as dispatcher
from hitl_approvals.models import Delivery
from hitl_approvals.services import deliveries as sending
from tests.e2e.databases import once
from tests.support import remote
from tests.webhooks.conftest import ALLOWED, SECRET
from tests.webhooks.receivers import SECONDS, status, wait_for
from tests.webhooks.scenes import CHANNEL, deliveries, owed, the_delivery

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("told"),
]


def until(holds, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


class Broker:
    """Stands for Celery's app where hints are published."""

    def __init__(self) -> None:
        self.sent: queue.Queue[tuple[str, list[str], str | None]] = queue.Queue()
        self.refuses = False

    def send_task(self, name, *, args, queue, retry, ignore_result):
        if self.refuses:
            raise ConnectionError("away")
        assert retry is False
        self.sent.put((name, args, queue))


@pytest.fixture
def broker(monkeypatch, told):
    told({"DISPATCHER": "celery"})
    made = Broker()
    monkeypatch.setattr(dispatcher, "current_app", made)
    return made


def test_with_celery_the_commit_announces_the_channel(broker):
    remote.ask()

    hint = broker.sent.get(timeout=SECONDS)
    assert hint == ("hitl_approvals.deliver", [CHANNEL], None)
    assert the_delivery().status == "owed"


def test_deliveries_may_have_a_queue_of_their_own(broker, told):
    told({"DISPATCHER": "celery", "CELERY_QUEUE": "agents"})
    remote.ask()
    assert broker.sent.get(timeout=SECONDS)[2] == "agents"

    told({"DISPATCHER": "celery", "WEBHOOK_CELERY_QUEUE": "outside"})
    remote.ask()
    assert broker.sent.get(timeout=SECONDS)[2] == "outside"


def test_a_broker_that_is_away_keeps_nobody_waiting_and_nothing_is_lost(
    broker, told, caplog
):
    broker.refuses = True
    row = remote.decided(remote.ask())

    assert row.status == "decided"
    until(lambda: "The broker refused hitl_approvals.deliver" in caplog.text)
    broker.refuses = False
    assert services.sweep().channels == 1
    assert broker.sent.get(timeout=SECONDS)[1] == [CHANNEL]


def test_a_broker_that_hangs_takes_no_slot_of_the_runs(broker, monkeypatch):
    hang = threading.Event()
    monkeypatch.setattr(broker, "send_task", lambda *_, **__: hang.wait(SECONDS))
    began = time.monotonic()
    told = [dispatchers.deliver([CHANNEL]) for _ in range(9)]

    assert time.monotonic() - began < 2
    assert told == [True] * 4 + [False] * 5
    assert dispatcher._slots.runs.acquire(blocking=False)
    dispatcher._slots.runs.release()
    hang.set()


def test_the_sweeper_sends_nothing_itself(broker, receiver):
    owed(2)
    while not broker.sent.empty():
        broker.sent.get()

    assert services.sweep().channels == 1

    assert receiver.received == []
    until(lambda: not broker.sent.empty())


def test_the_task_drains_the_channel(receiver):
    owed(2)

    assert tasks.deliver(CHANNEL) == 2
    assert tasks.deliver(CHANNEL, later="ignored") == 0
    assert len(receiver.received) == 2


def test_the_task_leaves_the_rest_to_another_and_says_so(monkeypatch, receiver, told):
    told({"DISPATCHER": "celery"})
    announced = []
    monkeypatch.setattr(dispatchers, "deliver", announced.append)
    owed(2)
    announced.clear()
    real = sending.drain
    monkeypatch.setattr(
        sending, "drain", lambda channel: real(channel, stop=_AfterOne())
    )

    assert tasks.deliver(CHANNEL) == 1
    assert announced == [[CHANNEL]]
    assert tasks.deliver(CHANNEL) == 1
    assert announced == [[CHANNEL]]


class _AfterOne:
    """Says to stop once one attempt was made."""

    def __init__(self) -> None:
        self.asked = 0

    def is_set(self) -> bool:
        self.asked += 1
        return self.asked > 1


@pytest.mark.parametrize("channel", ["webhook:none", "", "crm", str(uuid4())])
def test_a_hint_for_nothing_is_dropped(channel):
    assert tasks.deliver(channel) == 0


def test_inline_sends_before_the_commit_returns(told, receiver):
    told({"DISPATCHER": "inline"})
    row = remote.ask()

    assert [one.body for one in receiver.received]
    assert the_delivery(subject_id=row.pk).status == "delivered"


def test_inline_a_sweep_sends_what_is_due_again(told, receiver):
    told({"DISPATCHER": "inline"})
    receiver.answers = [status(500)]
    remote.ask()
    assert the_delivery().status == "owed"
    Delivery.objects.update(next_attempt_at=remote.PAST)

    services.sweep()

    assert the_delivery().status == "delivered"


def test_hitl_worker_once_sends_what_is_due(receiver):
    owed(2)

    call_command("hitl_worker", once=True)

    assert len(receiver.received) == 2
    assert {one.status for one in deliveries()} == {"delivered"}


def test_the_deliverer_finds_what_is_owed_and_stops(receiver):
    deliverer = Deliverer(poll=0.01)
    deliverer.start()
    owed()
    receiver.wait(1)
    until(lambda: the_delivery().status == "delivered")
    deliverer.stop()
    deliverer.join(SECONDS)
    owed()

    assert len(receiver.received) == 1
    assert not [t for t in threading.enumerate() if t.name.startswith("hitl-deliv")]


def test_a_stop_lets_the_attempt_that_is_under_way_end(receiver):
    hold = threading.Event()
    receiver.answers = [wait_for(hold, status(204))]
    owed(2)
    deliverer = Deliverer(poll=0.01)
    deliverer.start()
    receiver.wait(1)
    deliverer.stop()
    hold.set()
    deliverer.join(SECONDS)

    assert len(receiver.received) == 1
    assert sorted(one.status for one in deliveries()) == ["delivered", "owed"]


def test_a_deliverer_that_was_never_started_can_be_joined():
    deliverer = Deliverer()
    deliverer.stop()
    deliverer.join(0)


@pytest.mark.parametrize("kind", [DatabaseError, InterfaceError])
def test_a_database_that_is_away_for_a_moment_does_not_end_the_deliverer(
    receiver, monkeypatch, caplog, kind
):
    real, faults = delivering.upkeep.due_channels, [kind("away")]

    def due_channels():
        if faults:
            raise faults.pop()
        return real()

    monkeypatch.setattr(delivering.upkeep, "due_channels", due_channels)
    owed()
    deliverer = Deliverer(poll=0.01)
    deliverer.start()
    try:
        receiver.wait(1)
    finally:
        deliverer.stop()
        deliverer.join(SECONDS)

    assert "Could not look for deliveries" in caplog.text


def test_a_fault_in_a_drain_does_not_end_the_deliverer(receiver, monkeypatch, caplog):
    real, faults = sending.drain, [RuntimeError("ours")]

    def drain(channel, **options):
        if faults:
            raise faults.pop()
        return real(channel, **options)

    monkeypatch.setattr(sending, "drain", drain)
    owed()
    deliverer = Deliverer(poll=0.01)
    deliverer.start()
    try:
        receiver.wait(1)
    finally:
        deliverer.stop()
        deliverer.join(SECONDS)

    assert "Could not send what webhook:crm is owed" in caplog.text


@once
@pytest.mark.e2e
def test_a_real_celery_worker_delivers(receiver, told, redis_url, celery_app):
    """Announced over a real broker; the second one by the sweeper's hint alone."""
    name = f"webhooks-{os.getpid()}"
    site = {
        **ALLOWED,
        "DISPATCHER": "celery",
        "CELERY_QUEUE": name,
        "SWEEP": 0.2,
        "WEBHOOKS": {"crm": {"url": receiver.url, "secrets": [SECRET]}},
    }
    told(site)
    celery_app.conf.broker_url = redis_url
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.webhooks.process", "celery", redis_url, name],
        env={**os.environ, "HITL_APPROVALS": json.dumps(site)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        row = remote.ask()
        until(lambda: Delivery.objects.filter(status="delivered").count() == 1, 30)
        told({**site, "DISPATCHER": "worker"})  # no hint goes out from here
        remote.decided(row)
        until(lambda: Delivery.objects.filter(status="delivered").count() == 2, 30)
    finally:
        worker.terminate()
        output, _ = worker.communicate(timeout=30)

    assert worker.returncode == 0, output
    told = [json.loads(one.body)["type"] for one in receiver.received]
    assert told == ["interrupt.raised", "interrupt.decided"]

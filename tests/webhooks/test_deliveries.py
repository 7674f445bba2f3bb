"""Whatever happens to a receiver or to us, what is owed arrives, under the same id."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.db import connections, transaction
from standardwebhooks import Webhook

from hitl_approvals import services
from hitl_approvals.delivering import Deliverer
from hitl_approvals.exceptions import UnsafeContext
from hitl_approvals.models import DbNow, Delivery, DeliveryChannel, db_now_plus
from hitl_approvals.services import channels, upkeep
from hitl_approvals.services import deliveries as sending
from hitl_approvals.services.deliveries import backoff, drain
from hitl_approvals.services.transactions import run_atomic
from tests.concurrency.meeting import together
from tests.support import remote
from tests.support.agents import call
from tests.support.turns import begin
from tests.webhooks import receivers
from tests.webhooks.conftest import SECRET
from tests.webhooks.receivers import free_port, receiving, status, wait_for
from tests.webhooks.scenes import (
    CHANNEL,
    deliveries,
    make_due,
    owed,
    the_delivery,
    wake_channel,
)

MAIL = call("mail", "m", to="ann@example.org")

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("told"),
]


def wait_of(delivery: Delivery) -> float:
    """Return how many seconds there are until the next attempt."""
    found = Delivery.objects.annotate(now=DbNow()).get(pk=delivery.pk)
    assert found.next_attempt_at is not None
    return (found.next_attempt_at - found.now).total_seconds()


def channel() -> DeliveryChannel:
    return DeliveryChannel.objects.get(pk=CHANNEL)


def test_what_is_owed_arrives_once_and_verifies(receiver):
    (delivery,) = owed()

    assert drain(CHANNEL) == 1
    assert drain(CHANNEL) == 0

    (request,) = receiver.received
    fresh = the_delivery()
    assert request.headers["webhook-id"] == str(delivery.pk)
    assert Webhook(SECRET).verify(request.body, request.headers) == fresh.body
    assert (fresh.status, fresh.attempts, fresh.last_status) == ("delivered", 1, 204)
    assert fresh.delivered_at is not None
    assert fresh.next_attempt_at is None
    assert (fresh.lease_token, fresh.last_error) == ("", "")
    assert not DeliveryChannel.objects.exists()


def test_they_go_in_the_order_in_which_they_were_owed(receiver):
    found = owed(4)

    assert drain(CHANNEL) == 4

    assert [one.headers["webhook-id"] for one in receiver.received] == [
        str(one.pk) for one in found
    ]


def test_a_failure_is_told_and_tried_again_under_the_same_id(receiver):
    receiver.answers = [status(500)]
    (delivery,) = owed()

    assert drain(CHANNEL) == 1
    fresh = the_delivery()
    assert (fresh.status, fresh.attempts, fresh.last_status) == ("owed", 1, 500)
    assert fresh.last_error == "The answer was 500 Internal Server Error."
    assert 0 < wait_of(fresh) <= 5
    assert channel().failures == 1
    assert drain(CHANNEL) == 0
    make_due()
    assert drain(CHANNEL) == 1

    ids = [one.headers["webhook-id"] for one in receiver.received]
    bodies = {one.body for one in receiver.received}
    assert ids == [str(delivery.pk)] * 2
    assert len(bodies) == 1
    assert the_delivery().status == "delivered"
    assert the_delivery().last_error == ""
    assert channel().failures == 0


@pytest.mark.parametrize(
    "answer", [receivers.close_early, receivers.garbage, receivers.drip, status(302)]
)
def test_a_bad_receiver_costs_one_attempt_and_nothing_is_lost(receiver, told, answer):
    told({"WEBHOOK_TIMEOUT": 0.3})
    receiver.answers = [answer]
    owed()

    assert drain(CHANNEL) == 1
    assert the_delivery().status == "owed"
    assert the_delivery().last_error
    make_due()
    assert drain(CHANNEL) == 1

    assert the_delivery().status == "delivered"


def test_a_receiver_that_is_down_gets_it_when_it_is_back(told):
    port = free_port()
    told(url=f"http://127.0.0.1:{port}/")
    owed(3)

    # Where nobody is, one attempt is enough to know it.
    assert drain(CHANNEL) == 1
    assert sum(one.attempts for one in deliveries()) == 1
    with receiving() as back:
        told(url=back.url)
        make_due()
        assert drain(CHANNEL) == 3

    assert {one.status for one in deliveries()} == {"delivered"}


def test_the_wait_grows_by_chance_up_to_the_longest(told):
    told({"WEBHOOK_BACKOFF": 10, "WEBHOOK_BACKOFF_MAX": 100})

    for attempts, longest in [(1, 10), (2, 40), (3, 100), (30, 100)]:
        waits = [backoff(attempts).total_seconds() for _ in range(200)]
        assert 1 <= min(waits) < longest * 0.3
        assert longest * 0.7 < max(waits) <= longest
        assert len(set(waits)) > 100


def test_retry_after_is_heeded_for_the_whole_channel(receiver, told):
    receiver.answers = [status(429, Retry_After="120")]
    first, second = owed(2)

    assert drain(CHANNEL) == 1

    first.refresh_from_db()
    assert 115 < wait_of(first) <= 120
    assert not sending.is_due(CHANNEL)
    assert upkeep.due_channels() == []
    wake_channel()
    assert drain(CHANNEL) == 1  # the second one; the first waits for its own time
    assert the_delivery(status="delivered").pk == second.pk


def test_retry_after_is_heeded_no_longer_than_the_longest_wait(receiver, told):
    told({"WEBHOOK_BACKOFF_MAX": 60})
    receiver.answers = [status(503, Retry_After="999999999")]
    owed()

    drain(CHANNEL)

    assert 50 < wait_of(the_delivery()) <= 60


def test_gone_is_given_up_at_once(receiver):
    receiver.always = status(410)
    owed()

    assert drain(CHANNEL) == 1
    fresh = the_delivery()
    assert (fresh.status, fresh.last_status) == ("given_up", 410)
    assert fresh.last_error == "The answer was 410 Gone."
    assert fresh.next_attempt_at is None


def test_a_channel_that_fails_again_and_again_is_left_alone(receiver):
    receiver.always = status(500)
    owed(channels.MOST_FAILURES + 3)

    assert drain(CHANNEL) == channels.MOST_FAILURES

    assert channel().failures == channels.MOST_FAILURES
    assert channel().last_error == "The answer was 500 Internal Server Error."
    assert sending.owed_to(CHANNEL).count() == 3
    assert drain(CHANNEL) == 0
    assert upkeep.due_channels() == []

    # Its rest is over: one attempt finds that it is no better, and it rests for longer.
    wake_channel()
    assert upkeep.due_channels() == [CHANNEL]
    assert drain(CHANNEL) == 1
    assert drain(CHANNEL) == 0
    assert len(receiver.received) == channels.MOST_FAILURES + 1

    # It is back: whatever is due goes.
    receiver.always = status(204)
    make_due()
    wake_channel()
    assert drain(CHANNEL) == channels.MOST_FAILURES + 3
    assert channel().failures == 0
    assert channel().rests_until is None


def test_one_attempt_at_a_time_tries_whether_a_channel_is_back(receiver):
    DeliveryChannel.objects.create(name=CHANNEL, failures=9, rests_until=remote.PAST)
    owed(3)
    hold = threading.Event()
    receiver.answers = [wait_for(hold, status(500))]

    with Background(CHANNEL):
        receiver.wait(1)
        assert drain(CHANNEL) == 0
        hold.set()

    assert len(receiver.received) == 1


@pytest.mark.concurrency
def test_first_failures_that_come_together_are_all_counted():
    def fail():
        run_atomic(lambda: channels.note_failure(CHANNEL, "away", leave_alone=None))

    assert together(fail, fail, fail) == [None] * 3

    assert (channel().failures, channel().last_error) == (3, "away")
    assert channel().failed_at is not None


def test_a_rest_is_never_longer_than_its_limit():
    for failures in (5, 6, 20, 10_000):
        rest = channels._rest(failures, None)
        assert rest is not None
        assert timedelta(seconds=5) <= rest <= channels.LONGEST_REST
    assert channels._rest(4, None) is None
    assert channels._rest(4, timedelta(seconds=7)) == timedelta(seconds=7)


class Background:
    """Drain a channel in a thread with a connection of its own."""

    def __init__(self, channel: str) -> None:
        self.attempts = -1
        self.thread = threading.Thread(target=self.run, args=(channel,))

    def run(self, channel: str) -> None:
        try:
            self.attempts = drain(channel)
        finally:
            connections.close_all()

    def __enter__(self) -> Background:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.thread.join(20)
        assert not self.thread.is_alive()


def test_a_slow_endpoint_is_sent_to_one_after_the_other(receiver):
    owed(2)
    hold = threading.Event()
    receiver.answers = [wait_for(hold, status(204))]

    with Background(CHANNEL) as other:
        receiver.wait(1)
        assert drain(CHANNEL) == 0  # somebody else is at it
        hold.set()

    assert other.attempts == 2
    assert {one.status for one in deliveries()} == {"delivered"}


def test_more_at_once_if_the_site_wants_it(receiver, told):
    told({"WEBHOOK_CONCURRENCY": 2})
    owed(2)
    hold = threading.Event()
    receiver.answers = [wait_for(hold, status(204))]

    with Background(CHANNEL) as other:
        receiver.wait(1)
        assert drain(CHANNEL) == 1
        hold.set()

    assert other.attempts == 1


@pytest.mark.concurrency
def test_whoever_comes_together_makes_one_attempt(receiver, told):
    told({"WEBHOOK_CONCURRENCY": 9})
    for _round in range(3):
        owed()
        row = the_delivery(status="owed")
        before = len(receiver.received)

        taken = together(
            *[lambda: sending.take(the_delivery(status="owed")) for _ in range(4)]
        )
        assert sorted(taken) == [False, False, False, True]
        make_due(row)
        together(*[lambda: drain(CHANNEL) for _ in range(4)])

        assert len(receiver.received) == before + 1


@pytest.mark.concurrency
def test_many_at_once_send_everything_once(receiver, told):
    told({"WEBHOOK_CONCURRENCY": 9})
    found = owed(12)

    together(*[lambda: drain(CHANNEL) for _ in range(4)])

    ids = sorted(one.headers["webhook-id"] for one in receiver.received)
    assert ids == sorted(str(one.pk) for one in found)


def test_an_attempt_whose_lease_is_over_records_nothing(receiver, caplog, endpoint):
    (row,) = owed()
    assert sending.take(row)
    make_due(row)
    other = the_delivery()
    assert sending.take(other)

    with caplog.at_level(logging.WARNING, "hitl_approvals"):
        sending.attempt(row, endpoint)

    fresh = the_delivery()
    assert fresh.status == "owed"
    assert (fresh.attempts, fresh.lease_token) == (2, other.lease_token)
    assert "was taken from this process" in caplog.text
    sending.attempt(other, endpoint)
    assert the_delivery().status == "delivered"


def test_whoever_dies_between_sending_and_recording_is_followed_by_another(receiver):
    """Killed while the receiver has the message and we have no answer yet."""
    owed()
    hold = threading.Event()
    receiver.answers = [wait_for(hold, status(204))]
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.webhooks.process", "drain", CHANNEL],
        env={
            **os.environ,
            "HITL_APPROVALS": json.dumps(django_settings.HITL_APPROVALS),
        },
    )
    try:
        receiver.wait(1, 30)
    finally:
        child.kill()
        child.wait()
    hold.set()

    fresh = the_delivery()
    assert (fresh.status, fresh.attempts) == ("owed", 1)
    assert fresh.lease_token
    assert 0 < wait_of(fresh) <= channels.lease().total_seconds()
    assert drain(CHANNEL) == 0
    make_due()
    assert drain(CHANNEL) == 1

    first, second = receiver.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert the_delivery().status == "delivered"


def test_nothing_is_sent_inside_a_transaction(receiver):
    owed()

    with transaction.atomic(), pytest.raises(UnsafeContext):
        drain(CHANNEL)

    assert receiver.received == []


def test_our_own_fault_is_an_attempt_that_failed(receiver, monkeypatch, caplog):
    def broken(*_):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(sending, "send", broken)
    owed()

    assert drain(CHANNEL) == 1

    assert the_delivery().last_error == (
        "It could not be sent: ZeroDivisionError: ours"
    )
    assert the_delivery().status == "owed"
    assert "could not be sent" in caplog.text


def test_the_time_and_the_stop_end_a_drain(receiver):
    owed(3)
    stop = threading.Event()
    stop.set()

    assert drain(CHANNEL, stop=stop) == 0
    assert drain(CHANNEL, seconds=0) == 0
    assert len(deliveries(status="owed")) == 3


def test_a_channel_that_this_process_does_not_know_is_left_to_others(told, receiver):
    owed()
    told({"WEBHOOKS": {}})

    assert drain(CHANNEL) == 0
    services.sweep()

    assert the_delivery().status == "owed"
    told()
    assert drain(CHANNEL) == 1


def test_an_endpoint_that_is_gone_for_long_is_given_up(told, caplog):
    first, second = owed(2)
    told({"WEBHOOKS": {}})
    Delivery.objects.filter(pk=first.pk).update(created_at=a_while_ago(days=2))

    assert services.sweep().given_up == 1

    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, second.status) == ("given_up", "owed")
    assert "No endpoint of this name" in first.last_error
    assert "given up" in caplog.text


def test_after_days_it_is_given_up_with_the_last_error(receiver, told):
    receiver.always = status(500)
    owed()
    drain(CHANNEL)
    Delivery.objects.update(give_up_at=remote.PAST)
    make_due()

    assert drain(CHANNEL) == 0
    assert services.sweep().given_up == 1
    assert services.sweep().given_up == 0

    fresh = the_delivery()
    assert (fresh.status, fresh.attempts) == ("given_up", 1)
    assert fresh.last_error == "The answer was 500 Internal Server Error."


def test_an_attempt_that_is_under_way_is_not_given_up(receiver, endpoint):
    (row,) = owed()
    assert sending.take(row)
    Delivery.objects.update(give_up_at=remote.PAST)

    assert services.sweep().given_up == 0
    sending.attempt(row, endpoint)

    assert the_delivery().status == "delivered"


def test_the_time_to_give_up_begins_with_the_event(told):
    told({"WEBHOOK_GIVE_UP_AFTER": 100})
    (row,) = owed()

    assert row.give_up_at is not None
    assert abs((row.give_up_at - row.created_at).total_seconds() - 100) < 1


def a_while_ago(**span: float):
    return db_now_plus(-timedelta(**span))


def test_what_is_over_is_forgotten_in_time_and_what_is_owed_is_not(told):
    delivered, given_up, waits, young = owed(4)
    for one, change in [
        (delivered, "delivered"),
        (given_up, "given_up"),
        (waits, "owed"),
        (young, "delivered"),
    ]:
        Delivery.objects.filter(pk=one.pk).update(status=change)
    old = [one.pk for one in (delivered, given_up, waits)]
    Delivery.objects.filter(pk__in=old).update(created_at=a_while_ago(days=31))
    told({"DELIVERIES_KEPT": None})
    assert services.sweep().forgotten == 0

    told()
    assert services.sweep().forgotten == 2

    assert {one.pk for one in deliveries()} == {waits.pk, young.pk}


def test_a_slow_receiver_does_not_hold_up_another(told, receiver):
    hold = threading.Event()
    with receiving() as slow:
        slow.always = wait_for(hold, status(204))
        told(
            {
                "WEBHOOKS": {
                    "slow": {"url": slow.url, "secrets": [SECRET]},
                    "quick": {"url": receiver.url, "secrets": [SECRET]},
                }
            }
        )
        owed(3)
        deliverer = Deliverer(poll=0.02)
        deliverer.start()
        try:
            slow.wait(1)
            receiver.wait(3)
            assert len(slow.received) == 1
            hold.set()
            slow.wait(3)
        finally:
            hold.set()
            deliverer.stop()
            deliverer.join(10)

    assert {one.status for one in deliveries()} == {"delivered"}


def test_the_backlog_of_a_dead_channel_does_not_hold_up_another(told, receiver):
    dead = {"url": f"http://127.0.0.1:{free_port()}/", "secrets": [SECRET]}
    alive = {"url": receiver.url, "secrets": [SECRET], "events": ["turn.*"]}
    told({"WEBHOOKS": {"dead": dead, "alive": alive}})
    owed(12)
    for _ in range(channels.MOST_FAILURES + 1):
        drain("webhook:dead")
    services.cancel(begin([MAIL]).pk, by=None, via="test")

    assert upkeep.due_channels() == ["webhook:alive"]
    assert drain("webhook:alive") == 1
    assert len(receiver.received) == 1

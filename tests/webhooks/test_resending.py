"""A person sends a delivery once more or gives it up; nothing else changes it."""

from __future__ import annotations

import logging
from uuid import uuid4

import pytest

from hitl_approvals import dispatchers, services
from hitl_approvals.exceptions import (
    NotFound,
    ReviewerNotAllowed,
    TransitionNotAllowed,
)
from hitl_approvals.models import Delivery, DeliveryChannel
from hitl_approvals.services import deliveries as sending
from hitl_approvals.services.deliveries import drain
from tests.support import remote
from tests.webhooks.receivers import status
from tests.webhooks.scenes import CHANNEL, LATER, make_due, owed, the_delivery

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("told"),
]


@pytest.fixture
def operator(make_user):
    return make_user("olga", "administer_pendinginterrupt")


def resend(row, by=None):
    services.resend_delivery(row.pk, by=by)


def give_up(row, by=None, reason="not wanted any more"):
    services.give_up_delivery(row.pk, by=by, reason=reason)


@pytest.mark.parametrize("before", ["delivered", "given_up"])
def test_what_is_over_can_be_sent_once_more_under_the_same_id(
    before, receiver, operator, monkeypatch, caplog
):
    receiver.answers = [status(204 if before == "delivered" else 410)]
    (row,) = owed()
    drain(CHANNEL)
    assert the_delivery().status == before
    announced = []
    monkeypatch.setattr(dispatchers, "deliver", announced.append)

    with caplog.at_level(logging.INFO, "hitl_approvals"):
        resend(row, by=operator)

    fresh = the_delivery()
    assert (fresh.status, fresh.attempts, fresh.delivered_at) == ("owed", 0, None)
    assert fresh.give_up_at > row.give_up_at
    assert announced == [[CHANNEL]]
    assert "olga" in caplog.text
    assert drain(CHANNEL) == 1
    first, second = receiver.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == str(row.pk)
    assert first.body == second.body
    assert the_delivery().status == "delivered"


def test_what_waits_is_sent_at_once_though_its_channel_rests(receiver, operator):
    (row,) = owed()
    Delivery.objects.update(next_attempt_at=LATER, attempts=7)
    DeliveryChannel.objects.create(name=CHANNEL, failures=9, rests_until=LATER)
    assert drain(CHANNEL) == 0

    resend(row, by=operator)

    assert drain(CHANNEL) == 1
    assert the_delivery().status == "delivered"
    assert DeliveryChannel.objects.get().failures == 0


def test_what_is_being_sent_is_not_sent_a_second_time_beside_it(operator):
    (row,) = owed()
    assert sending.take(row)

    with pytest.raises(TransitionNotAllowed, match="being sent right now"):
        resend(row, by=operator)

    assert the_delivery().lease_token == row.lease_token
    # Whoever had it died: then it may.
    make_due(row)
    resend(row, by=operator)
    assert the_delivery().attempts == 0


def test_what_has_no_endpoint_any_more_cannot_be_sent(told, operator):
    (row,) = owed()
    told({"WEBHOOKS": {}})

    with pytest.raises(TransitionNotAllowed, match="no endpoint for webhook:crm"):
        resend(row, by=operator)


def test_what_is_owed_can_be_given_up_with_a_reason(receiver, operator):
    (row,) = owed()

    give_up(row, by=operator)

    fresh = the_delivery()
    assert (fresh.status, fresh.next_attempt_at) == ("given_up", None)
    assert fresh.last_error == "Given up by olga: not wanted any more"
    assert drain(CHANNEL) == 0
    assert receiver.received == []


def test_a_reason_that_no_column_can_hold_is_kept_without_that(operator):
    (row,) = owed()

    give_up(row, by=operator, reason="nul \x00, half \ud800" + "x" * 1000)

    fresh = the_delivery()
    assert fresh.last_error.startswith("Given up by olga: nul \ufffd, half ")
    assert len(fresh.last_error) == 500


def test_an_attempt_that_is_under_way_does_not_undo_it(operator, endpoint):
    (row,) = owed()
    assert sending.take(row)
    give_up(row, by=operator, reason=" ")

    sending.attempt(row, endpoint)

    fresh = the_delivery()
    assert (fresh.status, fresh.last_error) == ("given_up", "Given up by olga.")


@pytest.mark.parametrize("over", ["delivered", "given_up"])
def test_what_is_over_cannot_be_given_up(over, operator):
    (row,) = owed()
    Delivery.objects.update(status=over)

    with pytest.raises(TransitionNotAllowed, match="Only a delivery that is owed"):
        give_up(row, by=operator)

    assert the_delivery().last_error == ""


@pytest.mark.parametrize("verb", [resend, give_up])
def test_it_takes_the_right_to_administer(verb, make_user, reviewer):
    (row,) = owed()
    Delivery.objects.update(next_attempt_at=LATER)
    before = the_delivery()

    for person in (
        reviewer,
        make_user("vera", "view_pendinginterrupt", "change_delivery"),
    ):
        with pytest.raises(ReviewerNotAllowed):
            verb(row, by=person)

    after = the_delivery()
    assert (after.status, after.next_attempt_at) == ("owed", before.next_attempt_at)


@pytest.mark.parametrize("verb", [resend, give_up])
def test_a_delivery_that_is_not_there_is_not_found(verb, operator):
    for pk in (uuid4(), "no-uuid"):
        with pytest.raises(NotFound, match="no such delivery"):
            verb(Delivery(pk=pk), by=operator)


def test_trusted_code_needs_no_person():
    (row,) = owed()

    give_up(row)
    resend(row)

    assert the_delivery().status == "owed"
    assert remote.ask().status == "pending"

"""What is owed is written with the change, says little, and does not change afterwards."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from hitl_approvals import Edit, Reject, Respond, dispatchers, services, start_turn
from hitl_approvals.enums import EventType
from hitl_approvals.models import AgentTurn, Delivery, InterruptEvent
from hitl_approvals.services import recording
from hitl_approvals.webhooks.events import TOLD, UNTOLD, WebhookEvent
from hitl_approvals.webhooks.payloads import message
from tests.concurrency.meeting import errors, together
from tests.support import remote
from tests.support.agents import call
from tests.support.turns import (
    begin,
    decide,
    decide_and_resume,
    only,
    pass_execute_by,
    pass_expires_at,
    resume,
    rows,
    waiting,
)
from tests.webhooks.conftest import SECRET
from tests.webhooks.scenes import CHANNEL, deliveries, owed, the_delivery

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("told")]

MAIL = call("mail", "m", to="ann@example.org")


def types(**conditions: Any) -> list[str]:
    found = Delivery.objects.filter(**conditions)
    # Two of one transaction are told apart by nothing but the event that they tell of.
    return [one.event_type for one in found.order_by("created_at", "body")]


def test_every_audit_event_is_told_or_stays_inside():
    assert set(TOLD) | UNTOLD == set(EventType)
    assert not set(TOLD) & UNTOLD
    assert set(TOLD.values()) == set(WebhookEvent)


def test_a_remote_call_is_told_from_beginning_to_end():
    row = remote.ask()
    remote.decided(row)
    remote.fetch(row)
    remote.report(row)

    assert sorted(types(subject_id=row.pk)) == [
        "interrupt.decided",
        "interrupt.raised",
        "interrupt.resolved",
    ]


def test_a_turn_is_told_from_beginning_to_end():
    turn = begin([MAIL])
    decide_and_resume(turn)

    assert sorted(types()) == [
        "interrupt.decided",
        "interrupt.raised",
        "interrupt.resolved",
        "turn.completed",
    ]
    assert types(subject_id=turn.pk) == ["turn.completed"]


@pytest.mark.parametrize("decision", [Reject("no"), Edit({"order": "8", "amount": 1})])
def test_whatever_a_person_decides_is_told(decision):
    row = remote.ask(allowed_decisions=["approve", "edit", "reject"])
    remote.decided(row, decision)

    assert "interrupt.decided" in types(subject_id=row.pk)


def test_an_answer_is_told():
    row = remote.ask_question()
    remote.decided(row, Respond("the first"))

    assert "interrupt.decided" in types(subject_id=row.pk)


def test_an_expiry_a_withdrawal_and_a_doubt_are_told():
    late, gone = remote.ask(expires_in=timedelta(seconds=60)), remote.ask()
    pass_expires_at(late)
    services.sweep()
    remote.withdraw(gone)
    doubt = remote.in_doubt()

    assert "interrupt.expired" in types(subject_id=late.pk)
    assert "interrupt.cancelled" in types(subject_id=gone.pk)
    assert "interrupt.in_doubt" in types(subject_id=doubt.pk)


def test_a_lapsed_approval_is_raised_once_more_in_a_new_generation():
    turn = begin([MAIL])
    row = only(turn)
    decide(row)
    pass_execute_by(row)
    services.sweep()

    bodies = [one.body["data"] for one in deliveries(event_type="interrupt.raised")]
    assert sorted(one["generation"] for one in bodies) == [1, 2]
    assert {one["status"] for one in bodies} == {"pending"}


def test_a_turn_that_stops_or_fails_or_is_cancelled_is_told(world):
    cancelled = begin([MAIL])
    services.cancel(cancelled.pk, by=None, via="test")
    stuck = begin([MAIL])
    AgentTurn.objects.filter(pk=stuck.pk).update(max_attempts=1)
    decide(only(stuck))
    world.plan("mail", RuntimeError("broken"))
    resume(stuck)

    assert types(subject_id=cancelled.pk) == ["turn.cancelled"]
    assert set(types()) >= {"turn.cancelled", "interrupt.cancelled"}


def test_claims_and_late_results_are_nobodys_business(reviewer):
    row = remote.ask()
    before = types()
    services.claim(row.pk, by=reviewer, via="test")
    services.release(row.pk, by=reviewer, via="test")

    assert types() == before


def test_the_message_is_the_row_as_the_change_left_it():
    row = remote.ask(tags=["money"], thread_id="t-1", agent="billing-agent")
    remote.decided(row)

    delivery = the_delivery(event_type="interrupt.decided")
    event = InterruptEvent.objects.get(pk=delivery.event_id)
    fresh = remote.fresh(row)
    data = delivery.body["data"]
    assert set(delivery.body) == {"type", "timestamp", "data"}
    assert delivery.body["type"] == "interrupt.decided"
    assert datetime.fromisoformat(delivery.body["timestamp"]) == event.at
    assert delivery.body["timestamp"].endswith("Z")
    assert data["id"] == str(row.pk)
    assert (data["event_id"], data["sequence"]) == (str(event.pk), 1)
    assert (data["status"], data["decision"]) == ("decided", "approve")
    assert (data["revision"], data["generation"]) == (fresh.revision, 1)
    assert (data["client"], data["client_ref"]) == ("billing", row.client_ref)
    assert (data["tags"], data["thread_id"]) == (["money"], "t-1")
    assert data["decision_digest"] == fresh.decision_digest
    assert datetime.fromisoformat(data["decided_at"]) == fresh.decided_at
    assert delivery.subject_id == row.pk


def test_what_is_said_is_frozen_with_the_change():
    row = remote.ask()
    before = the_delivery().body
    remote.decided(row)

    assert the_delivery(event_type="interrupt.raised").body == before
    assert before["data"]["status"] == "pending"


def test_no_argument_and_no_text_of_a_person_leaves_the_site():
    row = remote.ask(
        args={"order": "the-secret-order", "amount": 1},
        context={"note": "the-secret-note"},
        why="the-secret-why",
    )
    remote.decided(row, Reject("the-secret-reason"))

    assert "the-secret" not in json.dumps([one.body for one in deliveries()])


def test_arguments_go_along_where_the_site_says_so(told):
    told(include_args=True)
    row = remote.ask(allowed_decisions=["approve", "edit", "reject"])
    remote.decided(row, Edit({"order": "8", "amount": 1}))

    data = the_delivery(event_type="interrupt.decided").body["data"]
    assert data["args"] == remote.ARGS
    assert data["decision_args"] == {"order": "8", "amount": 1}


def test_and_never_those_of_a_call_that_hides_some(told):
    told(include_args=True)
    remote.ask(redact=["order"])

    data = the_delivery().body["data"]
    assert (data["args"], data["decision_args"]) == (None, None)


def test_arguments_that_somebody_made_unreadable_are_null(told):
    told(include_args=True)
    row = remote.ask()
    event = InterruptEvent.objects.get(subject_id=row.pk)
    row.args_text = "{not JSON"

    body = message(WebhookEvent.INTERRUPT_RAISED, event, row, include_args=True)

    assert body["data"]["args"] is None


def test_an_endpoint_gets_what_it_asked_for(told):
    told(events=["interrupt.raised", "turn.*"])
    decide_and_resume(begin([MAIL]))

    assert sorted(types()) == ["interrupt.raised", "turn.completed"]


def test_an_endpoint_may_ask_for_queues_or_clients_and_gets_no_turns(told):
    told(clients=["billing"])
    remote.ask(remote.a_client("other"))
    decide_and_resume(begin([MAIL]))
    assert types() == []
    remote.ask()
    assert types() == ["interrupt.raised"]

    told(queues=["refunds"])
    remote.ask()
    assert types() == ["interrupt.raised"]
    told(queues=["default"])
    remote.ask()
    assert types() == ["interrupt.raised"] * 2


def test_two_endpoints_are_owed_one_each(told, receiver):
    one = {"url": receiver.url, "secrets": [SECRET]}
    told({"WEBHOOKS": {"a": one, "b": {**one, "events": "interrupt.*"}}})
    remote.ask()

    assert [d.channel for d in Delivery.objects.order_by("channel")] == [
        "webhook:a",
        "webhook:b",
    ]


def assert_told_once(*channels):
    """Compare what is owed with the audit trail: each event once for each channel."""
    events = InterruptEvent.objects.filter(type__in=TOLD)
    expected = {(name, event.pk) for event in events for name in channels}
    owed = list(Delivery.objects.values_list("channel", "event_id"))

    assert sorted(owed) == sorted(expected)


@pytest.mark.django_db(transaction=True)
@pytest.mark.concurrency
def test_of_those_who_decide_together_one_is_told():
    row = remote.ask(allowed_decisions=["approve", "edit", "reject"])
    results = together(
        lambda: remote.decided(row),
        lambda: remote.decided(row, Reject("no")),
        lambda: remote.withdraw(row),
        lambda: remote.decided(row, Edit({"order": "8", "amount": 1})),
    )

    assert len(errors(results)) in (2, 3)  # what was decided may still be withdrawn
    assert_told_once(CHANNEL)


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_is_tried_again_owes_once(monkeypatch):
    """The database gives up on a conflict after everything was written."""
    row = remote.ask()
    real, conflicts = recording.telling.tell_after_commit, [1, 1]

    def conflicting(events):
        real(events)
        if conflicts:
            conflicts.pop()
            error = OperationalError("database is locked")
            error.__cause__ = Conflict()
            raise error

    monkeypatch.setattr(recording.telling, "tell_after_commit", conflicting)
    announced = []
    monkeypatch.setattr(dispatchers, "deliver", announced.append)
    remote.decided(row)

    assert conflicts == []
    assert announced == [[CHANNEL]]
    assert_told_once(CHANNEL)


class Conflict(Exception):
    """What every database's conflict looks like to us."""

    sqlite_errorname = "SQLITE_BUSY"


@pytest.mark.django_db(transaction=True)
def test_every_event_of_a_long_story_is_owed_once_to_each(told, receiver, world):
    point = {"url": receiver.url, "secrets": [SECRET]}
    told({"WEBHOOKS": {"a": point, "b": point}})
    turn = begin([MAIL, call("pay", "p", order="7", amount="5")], [MAIL])
    decide_and_resume(turn, Reject("no"))
    decide(only_waiting(turn))
    services.sweep()
    services.cancel(turn.pk, by=None, via="test")
    remote.in_doubt()
    remote.withdraw(remote.approved())

    assert Delivery.objects.count() > 16
    assert_told_once("webhook:a", "webhook:b")


def only_waiting(turn):
    (row,) = waiting(turn)
    return row


def test_an_endpoint_is_told_of_an_event_once():
    (delivery,) = owed()

    with pytest.raises(IntegrityError), transaction.atomic():
        Delivery.objects.create(
            channel=CHANNEL,
            event_id=delivery.event_id,
            event_type=delivery.event_type,
            subject_id=delivery.subject_id,
            body={},
        )


@pytest.mark.django_db(transaction=True)
def test_what_is_taken_back_is_owed_to_nobody(told, monkeypatch):
    announced = []
    monkeypatch.setattr(dispatchers, "deliver", announced.append)
    row = remote.ask()

    with transaction.atomic():
        remote.decided(row)
        assert len(deliveries()) == 2
        transaction.set_rollback(True)

    assert types() == ["interrupt.raised"]
    assert announced == [[CHANNEL]]


@pytest.mark.django_db(transaction=True)
def test_the_announcement_follows_the_commit(told, monkeypatch):
    seen = []

    def deliver(channels):
        seen.append((channels, connection.in_atomic_block, len(deliveries())))

    monkeypatch.setattr(dispatchers, "deliver", deliver)
    with transaction.atomic():
        remote.ask()
        assert seen == []

    assert seen == [([CHANNEL], False, 1)]


@pytest.mark.django_db(transaction=True)
def test_an_announcement_that_fails_is_not_the_reviewers_problem(told, monkeypatch):
    def deliver(channels):
        raise RuntimeError("broken")

    monkeypatch.setattr(dispatchers, "deliver", deliver)
    row = remote.ask()
    remote.decided(row)

    assert remote.fresh(row).status == "decided"


@pytest.mark.parametrize(
    "broken",
    [
        ["crm"],
        {"crm": None},
        {"crm": {"events": 7}},
        {"crm": {"events": [None], "queues": 3}},
        {"crm": {"url": 5, "secrets": 5, "events": "*", "clients": "billing"}},
    ],
)
def test_a_mistake_in_the_settings_keeps_nobody_from_deciding(allowed, broken):
    allowed(WEBHOOKS=broken)
    row = remote.ask()
    remote.decided(row)

    assert remote.fresh(row).status == "decided"


def test_webhooks_cost_two_statements_and_nothing_where_there_are_none(allowed):
    row = remote.ask()
    with CaptureQueriesContext(connection) as with_one:
        remote.decided(row)
    allowed(WEBHOOKS={})
    other = remote.ask()
    with CaptureQueriesContext(connection) as without:
        remote.decided(other)

    # The row as it stands by then, and the delivery.
    assert len(with_one) == len(without) + 2
    assert types(subject_id=other.pk) == []


@pytest.mark.django_db(transaction=True)
def test_a_fork_tells_of_what_is_asked_again_and_not_of_what_was_copied():
    turn = begin([MAIL], [call("pay", "p", order="7", amount="5")])
    decide_and_resume(turn)
    first, second = rows(turn)
    decide_and_resume(turn)
    before = {one.pk for one in deliveries()}

    fork = services.fork(turn.pk, at=second.pk)

    told = [one for one in deliveries() if one.pk not in before]
    assert first.status == "resolved"
    assert [one.event_type for one in told] == ["interrupt.raised"]
    assert told[0].body["data"]["turn"] == str(fork.pk)


def test_start_turn_alone_tells_nothing():
    start_turn("scripted", [])

    assert types() == []

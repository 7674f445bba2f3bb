"""Signals tell the site's own code of the same events, after the commit, and safely."""

from __future__ import annotations

import logging
from contextlib import contextmanager

import pytest
from django.db import connection, transaction
from django.dispatch import Signal

from hitl_approvals import services, signals
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from hitl_approvals.services.telling import signal_of
from hitl_approvals.webhooks.events import WebhookEvent
from tests.support import remote
from tests.support.agents import call
from tests.support.turns import begin, decide_and_resume

pytestmark = pytest.mark.django_db(transaction=True)

MAIL = call("mail", "m", to="ann@example.org")


@contextmanager
def listening(signal: Signal, receiver=None, sender=None):
    heard: list[dict] = []

    def hear(**facts):
        heard.append({**facts, "inside": connection.in_atomic_block})

    chosen = receiver or hear
    signal.connect(chosen, sender=sender)
    try:
        yield heard
    finally:
        assert signal.disconnect(chosen, sender=sender)


def test_there_is_a_signal_for_every_event_and_nobody_of_ours_listens():
    assert {signal_of(event) for event in WebhookEvent} == {
        getattr(signals, name) for name in signals.__all__
    }
    assert not any(signal_of(event).receivers for event in WebhookEvent)


def test_a_receiver_hears_of_the_decision_after_its_commit():
    row = remote.ask()
    with listening(signals.interrupt_decided) as heard, transaction.atomic():
        remote.decided(row)
        assert heard == []

    (facts,) = heard
    event = InterruptEvent.objects.get(type="approved")
    assert facts.pop("signal") is signals.interrupt_decided
    assert facts == {
        "sender": PendingInterrupt,
        "interrupt_id": row.pk,
        "turn_id": None,
        "event_id": event.pk,
        "event_type": "approved",
        "status": "decided",
        "generation": 1,
        "revision": 2,
        "decision": "approve",
        "at": event.at,
        "inside": False,
    }


def test_a_turns_end_is_sent_by_its_own_class():
    with (
        listening(signals.turn_completed, sender=AgentTurn) as heard,
        listening(signals.turn_completed, sender=PendingInterrupt) as others,
        listening(signals.interrupt_resolved) as resolved,
    ):
        turn = begin([MAIL])
        decide_and_resume(turn)

    assert [one["turn_id"] for one in heard] == [turn.pk]
    assert heard[0]["interrupt_id"] is None
    assert heard[0]["decision"] is None
    assert [one["turn_id"] for one in resolved] == [turn.pk]
    assert others == []


def test_what_is_taken_back_is_not_told():
    row = remote.ask()
    with listening(signals.interrupt_decided) as heard, transaction.atomic():
        remote.decided(row)
        transaction.set_rollback(True)

    assert heard == []
    assert remote.fresh(row).status == "pending"


def test_a_receiver_that_raises_stops_nobody(caplog):
    def broken(**_):
        raise RuntimeError("a fault of the site")

    row = remote.ask()
    with (
        caplog.at_level(logging.ERROR),
        listening(signals.interrupt_decided, broken),
        listening(signals.interrupt_decided) as heard,
    ):
        remote.decided(row)

    assert remote.fresh(row).status == "decided"
    assert len(heard) == 1
    assert "a fault of the site" in caplog.text


def test_a_receiver_may_call_a_service_of_its_own():
    def approve(interrupt_id, **_):
        services.decide(interrupt_id, {"type": "approve"}, by=None, via="test")

    with listening(signals.interrupt_raised, approve):
        row = remote.ask()

    assert remote.fresh(row).status == "decided"

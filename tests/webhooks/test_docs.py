"""The reference says what is told, in which fields, and how signals are called."""

from __future__ import annotations

import json
import re

import pytest

from hitl_approvals import signals
from hitl_approvals.services.deliveries import drain
from hitl_approvals.webhooks.endpoints import KEYS
from hitl_approvals.webhooks.events import TOLD, WebhookEvent
from tests.docs.blocks import DOCS, blocks_of
from tests.docs.tables import code, tables_of
from tests.support import remote
from tests.support.agents import call
from tests.support.turns import begin, decide_and_resume
from tests.webhooks.conftest import SECRET
from tests.webhooks.scenes import CHANNEL, the_delivery

PAGE = DOCS / "reference/api/webhooks.md"
SIGNALS = DOCS / "reference/signals.md"
CODE = re.compile(r"`([^`]+)`")
MAIL = call("mail", "m", to="ann@example.org")


def names(heading, column="field", page=PAGE):
    return [code(row[column]) for row in tables_of(page)[heading]]


def test_the_page_tells_which_audit_event_is_told_as_what():
    column = "after which [audit events](../events.md)"
    table = tables_of(PAGE)["What is told"]
    shown = {
        audit: code(row["type"]) for row in table for audit in CODE.findall(row[column])
    }

    assert shown == {str(audit): str(told) for audit, told in TOLD.items()}
    assert names("What is told", "type") == [str(event) for event in WebhookEvent]


@pytest.mark.django_db(transaction=True)
def test_the_page_lists_every_field_and_header(told, receiver):
    remote.ask()
    drain(CHANNEL)
    data = the_delivery().body["data"]
    told(include_args=True)
    other = remote.ask()
    more = the_delivery(subject_id=other.pk).body["data"]
    decide_and_resume(begin([MAIL]))
    turn = the_delivery(event_type="turn.completed").body["data"]

    assert set(names("Data of an interrupt")) == set(data)
    assert names("Data of a turn") == sorted(turn, key=names("Data of a turn").index)
    assert set(more) - set(data) == {"args", "decision_args"}
    own = {one.lower() for one in names("Headers of a message", "header")}
    transport = {"host", "connection", "content-length", "accept-encoding"}
    assert own == set(receiver.received[0].headers) - transport


@pytest.mark.django_db
def test_the_example_has_the_fields_of_a_message(told):
    (block,) = [one for one in blocks_of(PAGE) if one.language == "json"]
    shown = json.loads(block.text)
    row = remote.ask()
    remote.decided(row)
    body = the_delivery(event_type="interrupt.decided").body

    assert list(shown) == ["type", "timestamp", "data"]
    assert set(shown) == set(body)
    assert set(shown["data"]) == set(body["data"])
    assert SECRET not in block.text


def test_the_how_to_lists_every_key_of_an_endpoint():
    page = DOCS / "how-to/webhooks.md"
    table = tables_of(page)["Tell the outside with webhooks"]

    assert tuple(code(row["key"]) for row in table) == KEYS


def test_every_signal_is_documented():
    table = tables_of(SIGNALS)["Signals"]
    shown = {code(row["signal"]): code(row["the same as the webhook"]) for row in table}

    assert set(shown) == set(signals.__all__)
    assert all(name == told.replace(".", "_") for name, told in shown.items())


@pytest.mark.django_db(transaction=True)
def test_every_argument_of_a_signal_is_documented():
    heard = []

    def hear(signal, sender, **facts):
        heard.append(facts)

    signals.interrupt_raised.connect(hear)
    try:
        remote.ask()
    finally:
        signals.interrupt_raised.disconnect(hear)

    assert names("Arguments", "argument", SIGNALS) == list(heard[0])

"""raise_remote(): what is frozen, what is one request, and what is refused."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import transaction

from hitl_approvals import canonical, services
from hitl_approvals.exceptions import ClientNotAllowed, KeyReused, PayloadRejected
from hitl_approvals.models import AgentClient, DbNow, PendingInterrupt, ReviewQueue
from hitl_approvals.services import clients
from tests.support.remote import (
    ARGS,
    SCHEMA,
    a_client,
    ask,
    ask_question,
    decided,
    events,
)

pytestmark = pytest.mark.django_db


def test_the_call_is_frozen_as_it_came():
    row = ask(
        ref="r1",
        args={"b": 1, "a": {"z": [1.5, None]}},
        tool_call_id="call-1",
        tool_description="Pays money back.",
        thread_id="t1",
        tags=["money"],
        why="above the limit",
        priority=3,
        context={"asked": "refund it", "agent_reason": "it broke"},
    )

    assert (row.status, row.revision, row.generation) == ("pending", 1, 1)
    assert (row.turn_id, row.client.name, row.client_ref) == (None, "billing", "r1")
    assert (row.kind, row.tool_name, row.agent) == ("tool_call", "refund", "billing")
    assert row.args_text == '{"a":{"z":[1.5,null]},"b":1}'
    assert row.args == {"a": {"z": [1.5, None]}, "b": 1}
    assert row.args_digest == canonical.digest(row.args_text) == row.requested_digest
    assert (row.args_schema, row.schema_digest) == (None, "")
    assert row.allowed_decisions == ["approve", "edit", "reject"]
    assert (row.tags, row.priority, row.thread_id) == (["money"], 3, "t1")
    assert row.policy["why"] == "above the limit"
    assert row.context["asked"] == "refund it"
    (event,) = events(row)
    assert (event.type, event.status, event.via) == ("raised", "pending", "python")
    assert (event.actor, event.actor_id) == (
        "client billing",
        f"client:{row.client_id}",
    )
    assert event.digest_proposed == row.args_digest
    assert (row.events_head, row.events_count) == (event.hash, 1)


def test_a_question_has_a_payload_and_no_call():
    row = ask_question(payload=["a", "b"], response_schema={"enum": ["a", "b"]})

    assert (row.kind, row.tool_name, row.args_text) == ("question", "", None)
    assert (row.payload, row.response_schema) == (["a", "b"], {"enum": ["a", "b"]})
    assert row.allowed_decisions == ["respond", "reject"]
    assert (row.args_digest, row.requested_digest) == ("", "")


def test_the_same_ref_with_the_same_content_is_one_row():
    client = a_client()
    sent = {"ref": "r1", "tool_name": "refund", "args": ARGS}

    first = services.raise_remote(client, **sent)
    second = services.raise_remote(client, **sent)

    assert (first.replayed, second.replayed) == (False, True)
    assert first.interrupt_id == second.interrupt_id
    row = PendingInterrupt.objects.get()
    assert row.events_count == 1
    decided(row)
    third = services.raise_remote(client, **sent)
    assert (third.interrupt_id, third.status) == (row.pk, "decided")


@pytest.mark.parametrize(
    "change",
    [
        {"args": {**ARGS, "amount": 121}},
        {"tool_name": "pay"},
        {"queue": "other"},
        {"why": "because"},
        {"allowed_decisions": ["approve", "reject"]},
        {"context": {"asked": "something else"}},
        {"expires_in": timedelta(hours=1)},
    ],
)
def test_the_same_ref_with_other_content_is_refused(change):
    row = ask(ref="r1")

    with pytest.raises(KeyReused, match="another request"):
        ask(ref="r1", **change)

    assert PendingInterrupt.objects.get() == row


def test_two_clients_may_use_the_same_ref():
    one, other = ask(a_client("one"), ref="r1"), ask(a_client("two"), ref="r1")

    assert one.pk != other.pk


def test_the_caller_may_name_the_row_and_a_taken_name_is_refused():
    name = uuid.uuid4()
    assert ask(ref="r1", interrupt_id=name).pk == name

    with pytest.raises(KeyReused, match="belongs to another request"):
        ask(ref="r2", interrupt_id=name)

    assert PendingInterrupt.objects.count() == 1


def test_an_unknown_queue_becomes_the_default_one_and_is_shown():
    ReviewQueue.objects.create(slug="money")

    assert ask(queue="money").queue_id == "money"
    row = ask(queue="nowhere")
    assert (row.queue_id, row.policy["queue_unknown"]) == ("default", "nowhere")


def test_a_client_has_a_queue_of_its_own():
    client = a_client()
    AgentClient.objects.filter(pk=client.pk).update(
        queue=ReviewQueue.objects.create(slug="money")
    )

    assert ask(client).queue_id == "money"


def test_the_times_are_the_requests_own_or_the_sites(settings):
    settings.HITL_APPROVALS = {"EXPIRES_IN": 600}
    now = PendingInterrupt.objects.annotate(now=DbNow())

    row = now.get(pk=ask().pk)
    assert 590 < (row.expires_at - row.now).total_seconds() <= 600
    row = now.get(pk=ask(expires_in=timedelta(hours=1)).pk)
    assert 3590 < (row.expires_at - row.now).total_seconds() <= 3600
    row = decided(ask(execute_within=timedelta(minutes=2)))
    assert (row.execute_by - row.decided_at).total_seconds() == pytest.approx(120, 0.1)


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"kind": "order"}, "kind"),
        ({"ref": " "}, "ref"),
        ({"ref": "r" * 501}, "ref"),
        ({"ref": "a\x00b"}, "ref"),
        ({"tool_name": ""}, "tool_name"),
        ({"tool_name": "t" * 129}, "tool_name"),
        ({"tool_description": "\ud800"}, "tool_description"),
        ({"args": None}, "args"),
        ({"args": {"amount": float("nan")}}, "args.amount"),
        ({"args": {1: 2}}, "args"),
        ({"payload": "why?"}, "payload"),
        ({"args_schema": {"type": "thing"}}, "args_schema"),
        ({"args_schema": SCHEMA, "args": {"order": "7"}}, "args"),
        ({"args_schema": SCHEMA, "args": {**ARGS, "amount": "x"}}, "args.amount"),
        ({"allowed_decisions": []}, "allowed_decisions"),
        ({"allowed_decisions": ["respond"]}, "allowed_decisions"),
        ({"redact": ["amuont"]}, "redact"),
        ({"fixed": ["amuont"]}, "fixed"),
        ({"tags": [1]}, "tags"),
        ({"priority": 40_000}, "priority"),
        ({"priority": True}, "priority"),
        ({"expires_in": timedelta()}, "expires_in"),
        ({"outcome_within": timedelta(seconds=-1)}, "outcome_within"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(change, loc):
    with pytest.raises(PayloadRejected) as caught:
        ask(**change)

    assert caught.value.errors[0]["loc"] == loc
    assert not PendingInterrupt.objects.exists()


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"tool_name": "refund"}, "tool_name"),
        ({"args": {}}, "args"),
        ({"response_schema": {"type": "thing"}}, "response_schema"),
    ],
)
def test_a_question_that_does_not_fit_is_refused_too(change, loc):
    with pytest.raises(PayloadRejected) as caught:
        ask_question(**change)

    assert caught.value.errors[0]["loc"] == loc


def test_what_is_too_large_is_refused(settings):
    settings.HITL_APPROVALS = {"MAX_PAYLOAD_BYTES": 100}

    for change in ({"args": {"x": "y" * 100}}, {"context": {"asked": "y" * 100}}):
        with pytest.raises(PayloadRejected) as caught:
            ask(**change)
        assert caught.value.reason == "too_large"


def test_a_revoked_client_can_neither_ask_nor_fetch():
    client = a_client()
    row = decided(ask(client))
    AgentClient.objects.filter(pk=client.pk).update(revoked_at=DbNow())

    with pytest.raises(ClientNotAllowed):
        ask(client)
    with pytest.raises(ClientNotAllowed):
        services.consume(row.pk, client=client, key="k")


def test_it_joins_the_callers_transaction():
    with transaction.atomic():
        ask()
        transaction.set_rollback(True)

    assert not PendingInterrupt.objects.exists()


def test_a_refusal_leaves_the_callers_transaction_usable():
    ask(ref="r1")

    with transaction.atomic():
        with pytest.raises(KeyReused):
            ask(ref="r1", args={})
        ask(ref="r2")

    assert PendingInterrupt.objects.count() == 2


def test_a_client_is_made_once_and_no_token_opens_it():
    made = clients.ensure_client("shop")

    assert clients.ensure_client("shop") == made
    assert made.token_digest.startswith("!")
    assert clients.ensure_client("other").token_digest != made.token_digest
    for name in ("", "n" * 101, "a\x00"):
        with pytest.raises(PayloadRejected):
            clients.ensure_client(name)


@pytest.mark.parametrize("slug", ["nowhere", "a\x00b", "\ud800", ""])
def test_a_queue_that_is_not_there_becomes_the_default_one(slug):
    row = ask(queue=slug)

    assert row.queue_id == "default"
    assert row.policy.get("queue_unknown", "") == slug

"""Every command may be sent again under its key: it is done once, and refused ones never."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from rest_framework.test import APIClient

from hitl_approvals import run_turn, services
from hitl_approvals.models import AgentTurn, IdempotencyRecord, InterruptEvent
from hitl_approvals.services import idempotency
from tests.api import scenes

pytestmark = pytest.mark.django_db(transaction=True)


def held(by: User) -> str:
    row = scenes.pending()
    services.claim(row.pk, by=by, via="test")
    return scenes.url(row)


def diverged() -> AgentTurn:
    row = scenes.pending()
    services.decide(row.pk, {"type": "approve"}, by=None, via="test")
    other = {"calls": [scenes.call("api_refund", {"order": "B-2", "amount": 1})]}
    AgentTurn.objects.filter(pk=row.turn_id).update(input=other)
    assert run_turn(row.turn_id) == "needs_attention"
    return AgentTurn.objects.get(pk=row.turn_id)


def turn_url(turn: AgentTurn) -> str:
    return f"{scenes.TURNS}{turn.pk}/"


VERBS: dict[str, tuple[Callable[[User], str], Any, Any]] = {
    "claim": (lambda by: scenes.url(scenes.pending()), {"minutes": 5}, {}),
    "release": (held, {"note": "lunch"}, {"note": "tea"}),
    "assign": (lambda by: scenes.url(scenes.pending()), {"to": "root"}, {"to": "x"}),
    "settle": (
        lambda by: scenes.url(scenes.in_doubt()),
        {"answer": "happened", "result": None, "note": "in the log"},
        {"answer": "give_up"},
    ),
    "re-review": (lambda by: scenes.url(diverged().interrupts.get()), {}, None),
    "cancel": (lambda by: turn_url(scenes.pending().turn), {}, {"reason": "why"}),
    "retry": (lambda by: turn_url(diverged()), {}, None),
    "restart": (lambda by: turn_url(diverged()), {}, {"input": None}),
}


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root", password="pw")


@pytest.fixture
def client(root: User) -> APIClient:
    made = APIClient()
    made.force_authenticate(root)
    return made


def send(client: APIClient, address: str, body: Any, key: str = "k-1") -> Any:
    return client.post(address, body, format="json", headers={"Idempotency-Key": key})


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_is_done_once_a_key(verb: str, client: APIClient, root: User) -> None:
    make, body, other = VERBS[verb]
    address = f"{make(root)}{verb}/"

    first = send(client, address, body)
    written = InterruptEvent.objects.count()
    again = send(client, address, body)
    # Another spelling of the same id names the same row.
    plain = send(
        client, address.replace("-", "").replace("rereview", "re-review"), body
    )

    assert first.status_code == 200, first.json()
    assert first["Idempotency-Replayed"] == "false"
    for repeat in (again, plain):
        assert repeat.status_code == 200, repeat.json()
        assert repeat["Idempotency-Replayed"] == "true"
        assert repeat.json() == first.json()
    assert InterruptEvent.objects.count() == written
    assert IdempotencyRecord.objects.count() == 1
    if other is not None:
        reused = send(client, address, other)
        assert (reused.status_code, reused.json()["code"]) == (409, "key_reused")
        assert InterruptEvent.objects.count() == written


@pytest.mark.parametrize("verb", VERBS)
def test_a_refused_command_leaves_its_key_free(
    verb: str, client: APIClient, root: User
) -> None:
    make, body, _other = VERBS[verb]
    address = f"{make(root)}{verb}/"
    viewer = APIClient()
    viewer.force_authenticate(
        scenes.user("viewer", "view_pendinginterrupt", "view_agentturn")
    )
    written = InterruptEvent.objects.count()

    refused = send(viewer, address, body)

    assert refused.status_code in (403, 423), refused.json()
    assert InterruptEvent.objects.count() == written
    assert not IdempotencyRecord.objects.exists()
    assert send(client, address, body)["Idempotency-Replayed"] == "false"


def test_a_key_belongs_to_whoever_used_it(client: APIClient) -> None:
    row = scenes.in_doubt()
    other = APIClient()
    other.force_authenticate(User.objects.create_superuser("other"))
    body = {"answer": "give_up"}
    send(client, scenes.url(row, "settle"), body)

    answer = send(other, scenes.url(row, "settle"), body)

    assert (answer.status_code, answer.json()["code"]) == (
        409,
        "transition_not_allowed",
    )


def test_the_answer_of_a_repeat_is_not_for_those_who_may_not_see_the_row(
    client: APIClient, root: User
) -> None:
    address = scenes.url(scenes.in_doubt(), "settle")
    send(client, address, {"answer": "give_up"})
    User.objects.filter(pk=root.pk).update(is_superuser=False)
    client.force_authenticate(User.objects.get(pk=root.pk))

    assert send(client, address, {"answer": "give_up"}).status_code == 404


def test_the_record_falls_with_the_callers_transaction(root: User) -> None:
    row = scenes.in_doubt()

    def give_up() -> bool:
        return idempotency.once(
            "settle",
            row.pk,
            lambda: services.settle(row.pk, "give_up", by=root, via="python"),
            by=root,
            key="k",
        )

    with transaction.atomic():
        assert give_up() is False
        assert give_up() is True  # and the caller's transaction goes on after it
        transaction.set_rollback(True)

    row.refresh_from_db()
    assert row.status == "in_doubt"
    assert not IdempotencyRecord.objects.exists()
    assert give_up() is False


def test_a_record_holds_nothing_of_what_was_sent(client: APIClient) -> None:
    row = scenes.in_doubt()
    body = {"answer": "happened", "result": None, "note": "psst"}

    send(client, scenes.url(row, "settle"), body, key="my-key")

    (kept,) = IdempotencyRecord.objects.values()
    assert "psst" not in str(kept)
    assert "my-key" not in str(kept)


def test_old_records_are_deleted_and_young_ones_kept(client: APIClient) -> None:
    for key in ("old", "young"):
        send(client, scenes.url(scenes.pending(), "claim"), {}, key=key)
    oldest = IdempotencyRecord.objects.earliest("pk")
    past = timezone.now() - timedelta(days=8)
    IdempotencyRecord.objects.filter(pk=oldest.pk).update(created_at=past)

    services.sweep()

    assert IdempotencyRecord.objects.exclude(pk=oldest.pk).count() == 1
    assert not IdempotencyRecord.objects.filter(pk=oldest.pk).exists()


@pytest.mark.parametrize("key", ["", " ", "x" * 256])
def test_a_key_that_is_none_is_refused(client: APIClient, key: str) -> None:
    row = scenes.pending()

    answer = send(client, scenes.url(row, "claim"), {}, key=key)

    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")

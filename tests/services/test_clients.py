"""Agent clients: made, let in, renewed, changed and revoked."""

from __future__ import annotations

import hashlib
import logging
import re
import threading
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db import connection

from hitl_approvals import services
from hitl_approvals.exceptions import (
    ClientNotAllowed,
    NotFound,
    PayloadRejected,
    ReviewerNotAllowed,
    TransitionNotAllowed,
)
from hitl_approvals.models import AgentClient, ReviewQueue
from hitl_approvals.services import client_limits, client_tokens, clients
from tests.support.remote import PAST, a_client, ask

pytestmark = pytest.mark.django_db
TOKEN = re.compile(r"hac_[A-Za-z0-9_-]{43}")


def made(name: str = "billing", **options) -> tuple[AgentClient, str]:
    return services.create_client(name, by=None, **options)


def columns(client: AgentClient) -> dict:
    return AgentClient.objects.filter(pk=client.pk).values().get()


@pytest.fixture
def queue() -> ReviewQueue:
    return ReviewQueue.objects.create(slug="refunds")


# made


def test_a_client_is_made_with_a_token_of_which_only_a_digest_is_kept(queue):
    client, token = made(queue="refunds", limits={"open": 3, "queues": ["default"]})

    assert TOKEN.fullmatch(token)
    assert client.token_digest == hashlib.sha256(token.encode()).hexdigest()
    assert client.token_hint == token[:10]
    assert (client.queue_id, client.revoked_at) == ("refunds", None)
    assert client.limits == {"open": 3, "queues": ["default"]}
    assert client.created_at is not None
    assert token not in str(columns(client))
    assert services.authenticate(token) == client


def test_two_tokens_are_never_the_same():
    assert len({client_tokens.new_token() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"name": "\ud800"}, "name"),
        ({"queue": "nowhere"}, "queue"),
        ({"queue": "\x00"}, "queue"),
        ({"limits": []}, "limits"),
        ({"limits": {"opne": 1}}, "limits.opne"),
        ({"limits": {"open": 0}}, "limits.open"),
        ({"limits": {"open": True}}, "limits.open"),
        ({"limits": {"per_minute": 1.5}}, "limits.per_minute"),
        ({"limits": {"waiting": "9"}}, "limits.waiting"),
        ({"limits": {"queues": "default"}}, "limits.queues"),
        ({"limits": {"queues": [1]}}, "limits.queues"),
        ({"limits": {"queues": ["\x00"]}}, "limits.queues"),
        ({"limits": {"queues": ["nowhere"]}}, "limits.queues"),
        ({"limits": {"queues": ["default"] * 101}}, "limits.queues"),
    ],
)
def test_what_does_not_fit_makes_no_client(change, loc):
    with pytest.raises(PayloadRejected) as caught:
        made(**{"name": "billing", **change})

    assert [one["loc"] for one in caught.value.errors] == [loc]
    assert not AgentClient.objects.exists()


def test_a_name_is_given_once():
    first, token = made()

    with pytest.raises(PayloadRejected, match="of that name"):
        made()

    assert AgentClient.objects.get() == first
    assert services.authenticate(token) == first


# let in


@pytest.mark.parametrize(
    "token",
    [
        "",
        "hac_",
        "hac_" + "x" * 43,
        "hac_" + "x" * 500,
        "HAC_" + "x" * 43,
        "hac_é" * 20,
    ],
)
def test_a_token_that_is_nobodys_lets_nobody_in(token):
    made()

    assert services.authenticate(token) is None


def test_neither_a_digest_nor_a_hint_is_a_token():
    client, _token = made()

    for text in (client.token_digest, "hac_" + client.token_digest, client.token_hint):
        assert services.authenticate(text) is None


def test_a_client_without_a_token_cannot_be_let_in():
    client = a_client()

    assert not client_tokens.is_digest(client.token_digest)
    assert services.authenticate("hac_" + client.token_digest[1:]) is None


# renewed


def test_a_new_token_ends_the_old_one_at_once():
    client, old = made()

    renewed, new = services.rotate_token(client.pk, by=None)

    assert (services.authenticate(old), services.authenticate(new)) == (None, client)
    assert renewed.token_hint == new[:10]
    assert (renewed.previous_digest, renewed.previous_until) == (None, None)


def test_the_old_token_may_be_let_in_for_a_while(make_late):
    client, old = made()

    renewed, new = services.rotate_token(
        client.pk, by=None, keep_old_for=timedelta(hours=1)
    )

    assert services.authenticate(old) == services.authenticate(new) == client
    make_late(renewed)
    assert services.authenticate(old) is None
    assert services.authenticate(new) == client


def test_only_the_token_before_is_let_in_beside_the_new_one():
    client, first = made()
    keep = timedelta(hours=1)
    _client, second = services.rotate_token(client.pk, by=None, keep_old_for=keep)

    _client, third = services.rotate_token(client.pk, by=None, keep_old_for=keep)

    let_in = [services.authenticate(each) for each in (first, second, third)]
    assert let_in == [None, client, client]


def test_a_token_that_leaked_ends_with_the_one_before_it():
    client, first = made()
    _client, second = services.rotate_token(
        client.pk, by=None, keep_old_for=timedelta(days=1)
    )

    services.rotate_token(client.pk, by=None)

    assert services.authenticate(first) is services.authenticate(second) is None


def test_a_client_without_a_token_gets_its_first_one():
    client = a_client()

    renewed, token = services.rotate_token(
        client.pk, by=None, keep_old_for=timedelta(hours=1)
    )

    assert services.authenticate(token) == client
    assert renewed.previous_digest is None


@pytest.mark.parametrize(
    "span", [timedelta(0), timedelta(seconds=-1), timedelta(days=91)]
)
def test_a_span_that_is_none_changes_nothing(span):
    client, token = made()

    with pytest.raises(PayloadRejected):
        services.rotate_token(client.pk, by=None, keep_old_for=span)

    assert services.authenticate(token) == client


def test_whoever_was_shown_a_token_keeps_it_when_two_renew_at_once(monkeypatch):
    client, _token = made()
    shown = []
    new_token = client_tokens.new_token

    def meanwhile() -> str:
        monkeypatch.setattr(client_tokens, "new_token", new_token)
        shown.append(services.rotate_token(client.pk, by=None)[1])
        return new_token()

    monkeypatch.setattr(client_tokens, "new_token", meanwhile)

    with pytest.raises(TransitionNotAllowed, match="just now"):
        services.rotate_token(client.pk, by=None)

    assert services.authenticate(shown[0]) == client


def test_a_form_that_is_sent_twice_makes_one_token():
    client, _token = made()
    seen = client.token_hint
    _client, new = services.rotate_token(client.pk, by=None, seen=seen)

    with pytest.raises(TransitionNotAllowed):
        services.rotate_token(client.pk, by=None, seen=seen)

    assert services.authenticate(new) == client


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_of_many_who_renew_at_once_every_shown_token_was_good():
    client, _token = made()
    barrier, shown = threading.Barrier(4), []

    def renew() -> None:
        try:
            barrier.wait()
            shown.append(services.rotate_token(client.pk, by=None)[1])
        except TransitionNotAllowed:
            pass
        finally:
            connection.close()

    threads = [threading.Thread(target=renew) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    # Those that came one after the other each ended the one before.
    assert [services.authenticate(each) for each in shown].count(client) == 1


# changed


def test_its_queue_and_its_limits_are_changed(queue):
    client, token = made(limits={"open": 3})

    assert services.change_client(client.pk, by=None).limits == {"open": 3}
    moved = services.change_client(client.pk, by=None, queue="refunds")
    assert (moved.queue_id, moved.limits) == ("refunds", {"open": 3})
    limited = services.change_client(client.pk, by=None, limits={"waiting": None})
    assert (limited.queue_id, limited.limits) == ("refunds", {"waiting": None})
    assert services.authenticate(token) == client
    assert ask(limited).queue_id == "refunds"


@pytest.mark.parametrize("change", [{"queue": "nowhere"}, {"limits": {"open": -1}}])
def test_a_change_that_does_not_fit_changes_nothing(change):
    client, _token = made()
    before = columns(client)

    with pytest.raises(PayloadRejected):
        services.change_client(client.pk, by=None, **change)

    assert columns(client) == before


# revoked


def test_a_revoked_client_is_out_for_good(queue):
    client, old = made()
    _client, token = services.rotate_token(
        client.pk, by=None, keep_old_for=timedelta(days=1)
    )

    revoked = services.revoke_client(client.pk, by=None)

    assert revoked.revoked_at is not None
    assert services.authenticate(old) is services.authenticate(token) is None
    for verb, change in (
        (services.rotate_token, {}),
        (services.change_client, {"queue": "refunds"}),
    ):
        with pytest.raises(ClientNotAllowed, match="for good"):
            verb(client.pk, by=None, **change)
    with pytest.raises(ClientNotAllowed):
        ask(client)
    assert services.revoke_client(client.pk, by=None).revoked_at == revoked.revoked_at


@pytest.mark.breaks_invariants
def test_a_token_is_not_let_in_again_by_who_takes_the_mark_away():
    client, token = made()
    services.revoke_client(client.pk, by=None)

    AgentClient.objects.filter(pk=client.pk).update(revoked_at=None)

    assert services.authenticate(token) is None


# who may


@pytest.mark.parametrize("pk", ["no-uuid", "019a3f6e-0000-7000-8000-000000000000"])
def test_a_client_that_is_not_there_is_not_found(pk):
    for verb in (services.rotate_token, services.revoke_client, services.change_client):
        with pytest.raises(NotFound, match="no such agent client"):
            verb(pk, by=None)


@pytest.mark.parametrize(
    ("rights", "active", "allowed"),
    [
        (("decide", "settle", "assign", "view", "reveal"), True, False),
        (("administer",), False, False),
        (("administer",), True, True),
    ],
)
def test_it_takes_the_right_to_administer(person, rights, active, allowed):
    client, token = made()
    who = person("ada", *(f"{each}_pendinginterrupt" for each in rights))
    who.is_active = active
    verbs = [
        lambda: services.create_client("other", by=who),
        lambda: services.change_client(client.pk, by=who, limits={}),
        lambda: services.rotate_token(client.pk, by=who),
        lambda: services.revoke_client(client.pk, by=who),
    ]

    for verb in verbs:
        if allowed:
            verb()
        else:
            with pytest.raises(ReviewerNotAllowed, match="administer"):
                verb()

    assert (services.authenticate(token) is None) is allowed
    assert AgentClient.objects.filter(name="other").exists() is allowed


def test_who_did_what_is_logged_and_never_a_token(caplog, person):
    who = person("ada", "administer_pendinginterrupt")
    caplog.set_level(logging.INFO, "hitl_approvals")

    client, first = services.create_client("two\nlines", by=who)
    _client, second = services.rotate_token(client.pk, by=who)
    services.change_client(client.pk, by=None, limits={"open": 1})
    services.revoke_client(client.pk, by=who)
    services.revoke_client(client.pk, by=who)

    said = [record.getMessage() for record in caplog.records]
    assert [line.rpartition(" was ")[2] for line in said] == [
        "made by ada",
        "given a new token by ada",
        "changed (limits) by system",
        "revoked by ada",
    ]
    assert all(str(client.pk) in line and "\n" not in line for line in said)
    for token in (first, second):
        assert not any(token[4:] in line for line in said)


# limits


def test_a_limit_is_the_clients_own_or_the_sites(settings):
    settings.HITL_APPROVALS = {"CLIENT_LIMITS": {"open": 7, "waiting": None}}
    client, _token = made(limits={"per_minute": None, "waiting": 2})

    limits = {name: services.limit_of(client, name) for name in client_limits.NUMBERS}

    assert limits == {"open": 7, "per_minute": None, "waiting": 2}


def test_limits_that_somebody_broke_by_hand_are_the_sites():
    client, _token = made()

    for broken in (None, [], "x", {"open": "many", "queues": 3}, {"open": -1}):
        client.limits = broken
        assert services.limit_of(client, "open") == 1000
        assert client_limits.queues_of(client) == ["default"]


def test_all_clients_are_listed_by_name():
    for name in ("b", "c", "a"):
        made(name)

    assert [client.name for client in clients.every()] == ["a", "b", "c"]


@pytest.fixture
def make_late():
    def late(client: AgentClient) -> None:
        AgentClient.objects.filter(pk=client.pk).update(previous_until=PAST)

    return late


@pytest.fixture
def person(django_user_model):

    def one(name: str, *rights: str):
        user = django_user_model.objects.create_user(name)
        user.user_permissions.set(Permission.objects.filter(codename__in=rights))
        return user

    return one

"""How much an agent client may ask for, and what it is told beyond that."""

from __future__ import annotations

import threading

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from hitl_approvals import Reject, services
from hitl_approvals.api import clients
from hitl_approvals.models import PendingInterrupt
from tests.api import scenes
from tests.api.remote_scenes import Agent
from tests.support.remote import decided, kinds

pytestmark = pytest.mark.django_db


def row_of(url: str) -> PendingInterrupt:
    return PendingInterrupt.objects.get(pk=url.rstrip("/").rpartition("/")[2])


def limited(**limits) -> Agent:
    return Agent("limited", limits=limits)


def test_so_many_requests_may_be_open_and_not_one_more():
    agent = limited(open=2)
    first, second = agent.raised("1"), agent.raised("2")

    refused = agent.ask("3")

    body = refused.json()
    assert (refused.status_code, body["code"]) == (429, "too_many_open")
    assert "2 requests" in body["detail"]
    assert PendingInterrupt.objects.count() == 2
    assert agent.ask("1").status_code == 200  # what is there is found
    decided(row_of(first))
    assert agent.ask("3").status_code == 429  # not fetched
    agent.consume(first)
    third = agent.raised("3")
    decided(row_of(second), Reject("no"))
    assert agent.ask("4").status_code == 429
    agent.consume(second)
    agent.raised("4")
    agent.cancel(third)
    agent.raised("5")
    assert agent.ask("6").status_code == 429


def test_what_others_have_open_does_not_count(agent):
    one = limited(open=1)
    agent.raised("1")
    scenes.pending()

    one.raised("1")
    assert one.ask("2").status_code == 429


def test_python_code_is_not_held_to_it():
    agent = limited(open=1)
    agent.raised("1")

    services.raise_remote(agent.client, ref="2", tool_name="t", args={})

    assert agent.ask("3").status_code == 429


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_of_requests_at_once_no_two_take_the_last_place():
    agents = [limited(open=3)] * 6
    barrier, answers = threading.Barrier(6), []

    def ask(number: int) -> None:
        try:
            barrier.wait()
            answers.append(agents[number].ask(str(number)).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=[number]) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(answers) == [201] * 3 + [429] * 3
    assert PendingInterrupt.objects.count() == 3


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_nothing_is_raised_once_its_client_is_revoked(monkeypatch):
    agent = limited()
    found = services.raising._found

    def meanwhile(row):
        services.revoke_client(agent.client.pk, by=None)
        return found(row)

    monkeypatch.setattr(services.raising, "_found", meanwhile)

    answer = agent.ask()

    assert (answer.status_code, answer.json()["code"]) == (403, "client_not_allowed")
    assert not PendingInterrupt.objects.exists()


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """The time that the throttle reads."""
    now = [6000.0]
    monkeypatch.setattr(clients.time, "time", lambda: now[0])
    return now


def test_so_many_writes_a_minute_and_as_many_reads_as_it_likes(clock):
    agent = limited(per_minute=3)
    url = agent.raised("1")
    clock[0] += 20
    agent.ask("1")
    agent.cancel(url)

    refused = agent.ask("2")

    assert (refused.status_code, refused.json()["code"]) == (429, "throttled")
    assert refused["Retry-After"] == "40"
    assert PendingInterrupt.objects.count() == 1
    assert agent.get(url).status_code == 200
    assert agent.get(scenes.LIST).status_code == 200
    clock[0] += 40
    assert agent.ask("2").status_code == 201


def test_one_clients_writes_are_not_anothers(clock, reviewer):
    first, second = limited(per_minute=1), Agent("second", limits={"per_minute": 1})

    url = first.raised("1")
    assert first.ask("2").status_code == 429
    second.raised("1")
    assert reviewer.post(f"{url}approve/").status_code == 200


def test_without_a_limit_nothing_is_counted(clock, settings):
    settings.HITL_APPROVALS = {"CLIENT_LIMITS": {"per_minute": 1}}
    free, held = limited(per_minute=None), Agent("held")

    for number in range(5):
        free.raised(str(number))
    held.raised()
    assert held.ask().status_code == 429


def test_a_count_that_the_cache_lost_begins_anew(clock, monkeypatch):
    agent = limited(per_minute=1)
    monkeypatch.setattr(clients.cache, "add", lambda *_: False)

    assert agent.ask().status_code == 201


def test_to_raise_costs_as_much_with_many_rows_as_with_one(
    django_assert_max_num_queries,
):
    agent = limited()
    with CaptureQueriesContext(connection) as first:
        url = agent.raised("first")
    cost = len(first)
    for number in range(5):
        agent.raised(str(number))

    with django_assert_max_num_queries(cost):
        agent.raised("last")

    assert kinds(row_of(url)) == ["raised"]

"""`?wait=`: who is held, what ends it, what is answered then, and what it costs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import InterfaceError, OperationalError, connections, transaction
from django.test.utils import CaptureQueriesContext
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient
from rest_framework.throttling import UserRateThrottle

from hitl_approvals import Approve, run_turn, services, start_turn
from hitl_approvals.api.interrupts import InterruptViewSet
from hitl_approvals.api.waiting import answers, kinds, views
from hitl_approvals.api.waiting import asking as parameters
from hitl_approvals.api.waiting.kinds import Kind
from hitl_approvals.api.waiting.watcher import watcher
from hitl_approvals.models import AgentTurn, PendingInterrupt, ReviewQueue
from hitl_approvals.services import turns
from tests.api import scenes
from tests.api.remote_scenes import Agent
from tests.api.waiting import (
    LONG,
    Asking,
    asking,
    nobody_waits,
    until_held,
    until_looked,
)
from tests.support import remote
from tests.workspace import ROOT

__all__ = ["nobody_waits"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nobody_waits"),
]


def waiting(row: Any, seconds: Any = LONG, **query: Any) -> str:
    kind = scenes.TURNS if isinstance(row, AgentTurn) else scenes.LIST
    states = "".join(f"&while={one}" for one in query.get("states", ()))
    return f"{kind}{row.pk}/?wait={seconds}{states}"


def decide(row: PendingInterrupt) -> None:
    services.decide(row.pk, Approve(), by=None, via="test")


def told(response: Any) -> tuple[int, str]:
    return response.status_code, response.json().get("status")


def test_a_decision_ends_the_wait_with_the_answer_of_a_plain_read(reviewer) -> None:
    row = scenes.pending()

    held = asking(reviewer, waiting(row))
    decide(row)
    answer, plain = held.answer(), reviewer.get(scenes.url(row))

    assert told(answer) == (200, "decided")
    assert answer.content == plain.content
    kept = {"X-Request-ID"}
    assert {**answer.headers, **dict.fromkeys(kept)} == {
        **plain.headers,
        **dict.fromkeys(kept),
    }


def test_what_is_not_pending_is_answered_at_once(reviewer) -> None:
    for state in ("decided", "resolved", "cancelled", "in_doubt"):
        row = scenes.make(state)

        assert told(reviewer.get(waiting(row))) == (200, state)


def test_the_end_of_the_wait_is_answered_with_the_row_as_it_is(reviewer) -> None:
    row = scenes.pending()

    begun = time.monotonic()
    answer = reviewer.get(waiting(row, "0.3"))

    assert told(answer) == (200, "pending")
    assert 0.3 <= time.monotonic() - begun < LONG


def test_a_claim_is_a_change(reviewer, people) -> None:
    row = scenes.pending()

    held = asking(reviewer, waiting(row))
    services.claim(row.pk, by=people["superuser"], via="test")

    assert held.answer().json()["assignee"] == "superuser"


def test_a_reader_says_in_which_states_there_is_nothing_to_tell(reviewer) -> None:
    row = scenes.decided()

    held = asking(reviewer, waiting(row, states=["pending", "decided"]))
    assert run_turn(row.turn_id) == "completed"

    assert told(held.answer()) == (200, "resolved")


UNREADABLE = [
    *("wait=", "wait=NaN", "wait=inf", "wait=-1", "wait=+1", "wait=1e1", "wait=abc"),
    *("wait=30.001", "wait=31", "wait=100", "wait=%20 1", "wait=1_0", "wait=%D9%A3"),
    *("wait=1&wait=2", "wait=.5", "wait=5.", "wait=1%00", "wait=1.0000001"),
    *("while=pending", "wait=1&while=", "wait=1&while=nothing", "wait=1&while=ready"),
]


def test_what_cannot_be_read_is_refused(reviewer) -> None:
    row = scenes.pending()

    for query in UNREADABLE:
        answer = reviewer.get(f"{scenes.url(row)}?{query}")

        body = answer.json()
        assert (answer.status_code, body["code"]) == (400, "malformed"), query
        assert [one["loc"] for one in body["errors"]] in (["wait"], ["while"])
        assert len(watcher) == 0


def test_no_seconds_are_a_plain_read(reviewer) -> None:
    row = scenes.pending()

    for query in ("wait=0", "wait=0.0", "wait=0&while=pending"):
        assert told(reviewer.get(f"{scenes.url(row)}?{query}")) == (200, "pending")
        assert watcher.join(0)


def test_the_longest_wait_may_be_asked_for(reviewer) -> None:
    row = scenes.pending()

    held = asking(reviewer, waiting(row, parameters.MOST))
    decide(row)

    assert told(held.answer()) == (200, "decided")


def test_who_may_not_see_a_row_does_not_wait_for_it(client_of) -> None:
    row = scenes.pending()

    for role, status in {"anonymous": 401, "stranger": 404}.items():
        assert client_of(role).get(waiting(row)).status_code == status
    assert client_of("reviewer").get(f"{scenes.LIST}7/?wait=5").status_code == 404


def _leave_the_queue(user: User) -> None:
    ReviewQueue.objects.get(pk="default").users.add(User.objects.get(username="viewer"))


def _lose_the_right(user: User) -> None:
    user.user_permissions.clear()


def _close_the_account(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def _delete_the_token(user: User) -> None:
    Token.objects.filter(user=user).delete()


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (_leave_the_queue, 404),
        (_lose_the_right, 404),
        (_close_the_account, 401),
        (_delete_the_token, 401),
    ],
)
def test_rights_are_asked_again_when_the_wait_is_over(people, change, status) -> None:
    row, user = scenes.pending(), people["reviewer"]
    http = APIClient()
    token = Token.objects.create(user=user)
    http.credentials(HTTP_AUTHORIZATION=f"Token {token.key}")

    held = asking(http, waiting(row))
    change(user)
    decide(row)
    answer, plain = held.answer(), http.get(scenes.url(row))

    assert answer.status_code == plain.status_code == status
    assert answer.headers.get("WWW-Authenticate") == plain.headers.get(
        "WWW-Authenticate"
    )
    assert answer["Cache-Control"] == "private, no-store"
    assert answer.json()["interrupt"] is None
    if status == 404:
        assert answer.content == plain.content


def test_a_client_waits_for_its_own_and_is_let_in_no_more_once_revoked() -> None:
    agent, other = Agent(), Agent("shipping")
    url = agent.raised()
    (row,) = PendingInterrupt.objects.all()

    assert other.get(url, wait=5).status_code == 404
    held = asking(agent.http, f"{url}?wait={LONG}")
    decide(row)
    assert told(held.answer()) == (200, "decided")

    second = agent.raised("second")
    held = asking(agent.http, f"{second}?wait={LONG}")
    services.revoke_client(agent.client.pk, by=None)
    decide(PendingInterrupt.objects.exclude(pk=row.pk).get())
    assert held.answer().status_code == 401


def test_a_change_between_the_read_and_the_wait_is_seen(reviewer, monkeypatch) -> None:
    row = scenes.pending()
    take = watcher._take

    def late(waiter: Any) -> None:
        decide(row)
        take(waiter)

    monkeypatch.setattr(watcher, "_take", late)

    assert told(Asking(reviewer, waiting(row)).answer()) == (200, "decided")


class FromAReplica:
    """Reads interrupts and turns from a database that is far behind: it is not there."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "replica" if model in (PendingInterrupt, AgentTurn) else None


@pytest.mark.parametrize("role", ["reviewer", "superuser"])
def test_a_replica_is_never_read(client_of, settings, role: str) -> None:
    http, row = client_of(role), scenes.pending()
    settings.DATABASE_ROUTERS = [f"{__name__}.FromAReplica"]

    held = [asking(http, waiting(row))]
    if role == "superuser":
        states = ["suspended"]
        held.append(asking(http, waiting(row.turn, states=states), beside=1))
    settings.DATABASE_ROUTERS = []
    decide(row)
    settings.DATABASE_ROUTERS = [f"{__name__}.FromAReplica"]

    assert [told(one.answer()) for one in held] == [
        *((200, "decided"), (200, "ready"))[: len(held)]
    ]
    settings.DATABASE_ROUTERS = []


def test_a_row_that_goes_is_not_found(reviewer) -> None:
    row = remote.ask()

    held = asking(reviewer, waiting(row))
    PendingInterrupt.objects.filter(pk=row.pk).delete()

    assert held.answer().status_code == 404


def test_many_wait_for_one_look_and_each_gets_its_own(reviewer, people) -> None:
    viewer = APIClient()
    viewer.force_authenticate(people["viewer"])
    rows = [scenes.pending(), scenes.pending()]
    held = []
    for http in (reviewer, viewer):
        for n, row in enumerate(rows):
            headers = {"X-Request-ID": f"{http is viewer}-{n}"}
            held.append(asking(http, waiting(row), beside=len(held), headers=headers))
    for row in rows:
        decide(row)
    answers = [one.answer() for one in held]

    assert [told(one) for one in answers] == [(200, "decided")] * 4
    assert [one["X-Request-ID"] for one in answers] == [
        *("False-0", "False-1", "True-0", "True-1")
    ]
    assert [one.json()["id"] for one in answers] == [str(row.pk) for row in rows] * 2


def test_addresses_are_those_under_which_one_asked(reviewer) -> None:
    row = scenes.pending()

    held = asking(reviewer, waiting(row), prefix="/below/", HTTP_HOST="localhost")
    decide(row)

    url = held.answer().json()["url"]
    assert url == f"http://localhost/below{scenes.url(row)}"


def begun(name: str = "requester", *calls: Any) -> AgentTurn:
    by = User.objects.get(username=name)
    return start_turn("api_agent", {"calls": list(calls)}, requested_by=by)


@pytest.mark.parametrize("call", [None, scenes.call("api_refund", scenes.REFUND)])
def test_a_turn_is_told_of_when_it_is_over_or_needs_somebody(requester, call) -> None:
    turn = begun("requester", *([] if call is None else [call]))

    held = asking(requester, waiting(turn))
    became = run_turn(turn.pk)
    answer, plain = held.answer(), requester.get(f"{scenes.TURNS}{turn.pk}/")

    assert became == ("completed" if call is None else "suspended")
    assert told(answer) == (200, became)
    assert answer.content == plain.content


def test_that_a_worker_takes_a_turn_is_no_news(requester) -> None:
    turn = begun()

    held = asking(requester, waiting(turn))
    looks = watcher.looks
    assert turns.claim(turn.pk, [("api_agent", "1")])
    until_looked(looks + 2)
    assert len(watcher) == 1
    services.cancel(turn.pk, by=None, via="test")

    assert told(held.answer()) == (200, "cancelled")


def test_each_decision_of_a_suspended_turn_is_news_to_whoever_waits_in_it(
    requester,
) -> None:
    calls = [scenes.call("api_refund", scenes.REFUND, f"c{n}") for n in (1, 2)]
    turn = begun("requester", *calls)
    assert run_turn(turn.pk) == "suspended"
    assert told(requester.get(waiting(turn))) == (200, "suspended")

    held = asking(requester, waiting(turn, states=["suspended"]))
    decide(turn.interrupts.earliest("position"))
    answer = held.answer()

    assert told(answer) == (200, "suspended")
    assert answer.json()["undecided"] == 1


def test_inside_a_transaction_nobody_waits(reviewer) -> None:
    row = scenes.pending()

    with transaction.atomic():
        assert told(reviewer.get(waiting(row))) == (200, "pending")


def test_while_it_waits_a_request_has_no_connection(reviewer, monkeypatch) -> None:
    row = scenes.pending()
    open_ones: list[bool] = []
    take = watcher._take

    def noting(waiter: Any) -> None:
        open_ones.extend(one.connection is not None for one in connections.all())
        take(waiter)

    monkeypatch.setattr(watcher, "_take", noting)
    held = asking(reviewer, waiting(row))
    decide(row)

    assert told(held.answer()) == (200, "decided")
    assert open_ones
    assert not any(open_ones)


def test_a_request_too_many_is_told_to_come_again(reviewer, people, settings) -> None:
    viewer = APIClient()
    viewer.force_authenticate(people["viewer"])
    row = scenes.pending()
    for limits, refused in (
        ({"WAITERS_MOST": 1}, [reviewer, viewer]),
        ({"WAITERS_EACH": 1}, [reviewer]),
    ):
        settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, **limits}
        held = asking(reviewer, waiting(row, states=["pending", "decided"]))
        for http in refused:
            answer = http.get(waiting(row, states=["pending", "decided"]))
            body = answer.json()
            assert (answer.status_code, body["code"]) == (429, "throttled")
            assert body["interrupt"] is None
            assert int(answer["Retry-After"]) > 0
        settings.HITL_APPROVALS = {"DISPATCHER": "worker"}
        services.claim(row.pk, by=people["superuser"], via="test")
        services.release(row.pk, by=people["superuser"], via="test")
        assert held.answer().status_code == 200
        until_held(0)


def test_a_client_has_as_many_places_as_its_limits_say() -> None:
    agent = Agent(limits={"waiting": 1})
    url = agent.raised()

    held = asking(agent.http, f"{url}?wait={LONG}")
    assert agent.get(url, wait=1).status_code == 429
    decide(PendingInterrupt.objects.get())
    assert told(held.answer()) == (200, "decided")


def test_a_wait_counts_as_one_request(reviewer, monkeypatch) -> None:
    cache.clear()
    row = scenes.pending()
    monkeypatch.setattr(InterruptViewSet, "throttle_classes", [UserRateThrottle])
    monkeypatch.setattr(UserRateThrottle, "rate", "2/day", raising=False)

    assert told(reviewer.get(waiting(row, "0.1"))) == (200, "pending")
    assert told(reviewer.get(scenes.url(row))) == (200, "pending")
    assert reviewer.get(scenes.url(row)).status_code == 429
    cache.clear()


def test_one_query_looks_at_all_rows(monkeypatch, reviewer) -> None:
    rows = [scenes.pending() for _ in range(3)]
    asked: list[int] = []
    standings = Kind.standings

    def counted(kind: Kind, ids: Any) -> Any:
        with CaptureQueriesContext(connections["default"]) as found:
            yield from standings(kind, ids)
        asked.append(len(found))

    held = [asking(reviewer, waiting(rows[n % 3]), beside=n) for n in range(6)]
    looks = watcher.looks
    monkeypatch.setattr(Kind, "standings", counted)
    until_looked(looks + 3)
    for row in rows:
        decide(row)

    assert {told(one.answer()) for one in held} == {(200, "decided")}
    assert set(asked) == {1}


@pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
def test_who_cannot_be_answered_together_looks_alone(
    reviewer, monkeypatch, caplog, kind
) -> None:
    row = scenes.pending()
    read = answers._read

    def fails(parties: Any) -> Any:
        # The thread that looks for all, and not the request that looks for itself.
        if threading.current_thread().name != "hitl-watcher":
            return read(parties)
        raise kind("gone away")

    monkeypatch.setattr(answers, "_read", fails)
    held = asking(reviewer, waiting(row))
    decide(row)

    assert told(held.answer()) == (200, "decided")
    assert "could not be read" in caplog.text


def test_a_database_that_fails_ends_no_wait(reviewer, monkeypatch, caplog) -> None:
    row, second = scenes.pending(), scenes.pending()
    standings = Kind.standings

    def fails(kind: Kind, ids: Any) -> Any:
        raise OperationalError("gone away")

    held = asking(reviewer, waiting(row))
    monkeypatch.setattr(Kind, "standings", fails)
    # Nobody can look: at its end the request looks for itself.
    assert told(reviewer.get(waiting(second, "0.2"))) == (200, "pending")
    monkeypatch.setattr(Kind, "standings", standings)
    decide(row)

    assert told(held.answer()) == (200, "decided")
    assert "could not be looked at" in caplog.text


def test_a_watcher_that_hangs_leaves_nobody_behind(reviewer, monkeypatch) -> None:
    row, goes_on = scenes.pending(), threading.Event()
    monkeypatch.setattr(views, "GRACE", 0.1)
    monkeypatch.setattr(watcher, "_look", lambda: [][: goes_on.wait(LONG)])

    assert told(reviewer.get(waiting(row, "0.1"))) == (200, "pending")
    goes_on.set()


def test_whom_the_batch_cannot_answer_looks_for_itself(
    reviewer, monkeypatch, caplog
) -> None:
    row = scenes.pending()
    shown, failed = answers._shown, []

    def once(*args: Any) -> Any:
        if not failed:
            failed.append(1)
            raise RuntimeError("a site's own code")
        return shown(*args)

    monkeypatch.setattr(answers, "_shown", once)
    held = asking(reviewer, waiting(row))
    decide(row)

    assert told(held.answer()) == (200, "decided")
    assert "could not be answered" in caplog.text


def test_a_head_request_waits_as_well(reviewer) -> None:
    row = scenes.pending()

    assert reviewer.head(waiting(row, "0.1")).status_code == 200
    assert reviewer.post(waiting(row)).status_code == 405


def test_a_forked_process_begins_without_those_who_wait() -> None:
    code = (
        "import os, types, django; django.setup()\n"
        "from hitl_approvals.api.waiting.watcher import watcher\n"
        "one = types.ModuleType('one')\n"
        "one.account, one.places, one.begin = 1, None, lambda: None\n"
        "watcher._running = True\n"
        "with watcher.waiting(one):\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        os._exit(len(watcher) + 2 * watcher._running)\n"
        "    print(len(watcher), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings.sqlite"},
        capture_output=True,
        text=True,
    )

    assert done.stdout.split() == ["1", "0"]


def test_many_viewers_are_answered_from_one_read(monkeypatch) -> None:
    agents = [Agent(f"agent-{n}") for n in range(3)]
    urls = [agent.raised() for agent in agents]
    held = [
        asking(agent.http, f"{url}?wait={LONG}", beside=n)
        for n, (agent, url) in enumerate(zip(agents, urls, strict=True))
    ]
    queries: list[str] = []
    answer = answers.answer

    def counted(waiters: Any) -> None:
        with CaptureQueriesContext(connections["default"]) as found:
            answer(waiters)
        queries.extend(one["sql"] for one in found.captured_queries)

    monkeypatch.setattr(answers, "answer", counted)
    with transaction.atomic():
        for row in PendingInterrupt.objects.all():
            decide(row)

    assert [told(one.answer()) for one in held] == [(200, "decided")] * 3
    assert len(queries) == 2


def test_rows_are_looked_at_in_parts(monkeypatch) -> None:
    monkeypatch.setattr(kinds, "CHUNK", 2)
    rows = [scenes.pending() for _ in range(3)]

    found = dict(kinds.INTERRUPTS.standings([row.pk for row in rows]))

    assert found == {row.pk: ("pending", 1, 1) for row in rows}

"""The audit trail, the journal and the queues: who may see them, and what stays hidden."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from hitl_approvals import canonical, run_turn, services
from hitl_approvals.api import events as trails
from hitl_approvals.models import AgentTurn, InterruptEvent, ReviewQueue
from hitl_approvals.models.events import HASHED
from tests.api import matrix, scenes

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "tok-3f9c-very-secret"


@pytest.fixture
def root(db: None) -> APIClient:
    made = APIClient()
    made.force_authenticate(User.objects.create_superuser("root"))
    return made


def client(name: str, *rights: str) -> APIClient:
    made = APIClient()
    made.force_authenticate(scenes.user(name, *rights))
    return made


def turn_url(turn: AgentTurn | None, what: str = "") -> str:
    assert turn is not None
    return f"{scenes.TURNS}{turn.pk}/{what}"


def test_the_events_of_an_interrupt_are_a_chain_that_can_be_verified(
    root: APIClient,
) -> None:
    row = scenes.resolved()

    body = root.get(scenes.url(row, "events")).json()

    found = body["results"]
    assert [one["type"] for one in found] == ["raised", "approved", "resolved"]
    assert [one["sequence"] for one in found] == [0, 1, 2]
    assert (body["next"], body["count"]) == (None, 3)
    previous = ""
    for one in found:
        covered = {name: one[name] for name in HASHED}
        for name in ("at", "execute_by"):
            if covered[name] is not None:
                moment = datetime.fromisoformat(covered[name])
                covered[name] = moment.isoformat(timespec="milliseconds")
        assert one["previous_hash"] == previous
        assert one["hash"] == canonical.digest(canonical.dumps(covered))
        assert one["redacted"] is False
        previous = one["hash"]
    assert body["head"] == previous


def test_events_come_in_pages_that_can_be_followed(root: APIClient) -> None:
    row = scenes.resolved()
    address: str | None = f"{scenes.url(row, 'events')}?page_size=2"
    seen = []
    while address:
        body = root.get(address).json()
        seen.append([one["sequence"] for one in body["results"]])
        address = body["next"]

    assert seen == [[0, 1], [2]]
    later = root.get(scenes.url(row, "events"), {"after": "2"}).json()
    assert (later["results"], later["next"], later["count"]) == ([], None, 3)


@pytest.mark.parametrize(
    ("query", "loc"),
    [
        ("after=x", "after"),
        ("after=-1", "after"),
        ("after=%C2%B2", "after"),
        ("after=" + "9" * 50, "after"),
        ("after=1&after=2", "after"),
        ("page_size=0", "page_size"),
        ("cursor=1", "cursor"),
    ],
)
def test_what_cannot_be_read_is_refused(root: APIClient, query: str, loc: str) -> None:
    row = scenes.pending()

    for address in (
        scenes.url(row, "events"),
        turn_url(row.turn, "events/"),
        turn_url(row.turn, "steps/"),
    ):
        answer = root.get(f"{address}?{query}")
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
        assert [one["loc"] for one in answer.json()["errors"]] == [loc]


def test_hidden_arguments_are_in_no_trail_and_in_no_journal(root: APIClient) -> None:
    calls = [
        scenes.call("api_login", {"host": "h", "token": SECRET}, "c1"),
        scenes.call("api_store", {"value": {"was": f"<{SECRET}>"}}, "c2"),
    ]
    turn = scenes.suspended(*calls)
    login, store = turn.interrupts.order_by("position")
    note = f"I typed {SECRET}."
    services.decide(login.pk, {"type": "reject", "reason": note}, by=None, via="x")
    services.decide(store.pk, {"type": "approve"}, by=None, via="x")
    assert run_turn(turn.pk) == "completed"
    other = scenes.suspended(calls[0])
    services.cancel(other.pk, by=None, via="x", reason=note)

    trail = root.get(scenes.url(login, "events"))
    steps = root.get(turn_url(turn, "steps/"))
    ended = root.get(turn_url(other, "events/"))

    for answer in (trail, steps, ended):
        assert answer.status_code == 200
        assert SECRET not in answer.content.decode()
    assert [one["redacted"] for one in trail.json()["results"]] == [False, True, False]
    told = trail.json()["results"][1]["detail"]["reason"]
    assert told == "I typed [hidden]."
    (stored,) = [s for s in steps.json()["results"] if s["name"] == "api_store"]
    assert stored["result"] == {"was": "<[hidden]>"}
    assert ended.json()["results"][-1]["detail"] == {"reason": "I typed [hidden]."}


def test_the_journal_is_in_order_and_leaves_out_what_is_long(root: APIClient) -> None:
    long = "x" * trails.MOST_BYTES
    calls = [
        scenes.call("api_store", {"value": value}, f"c{number}")
        for number, value in enumerate(["short", long, 10**30])
    ]
    turn = scenes.suspended(*calls)
    for row in turn.interrupts.all():
        services.decide(row.pk, {"type": "approve"}, by=None, via="x")
    assert run_turn(turn.pk) == "completed"

    pages, address = [], turn_url(turn, "steps/?page_size=2")
    while address:
        body = json.loads(root.get(address).content)
        pages.append(body["results"])
        address = body["next"]

    steps = [one for page in pages for one in page]
    assert [len(page) for page in pages] == [2, 1]
    assert [one["result"] for one in steps] == ["short", None, 10**30]
    assert [one["result_bytes"] for one in steps] == [7, len(long) + 2, 31]
    assert {one["status"] for one in steps} == {"succeeded"}
    assert all(one["interrupt"] and one["finished_at"] for one in steps)
    assert "args" not in steps[0]


def test_trails_are_for_those_who_may_see_what_they_are_about() -> None:
    starter = scenes.user("starter", "add_agentturn")
    row = scenes.pending(by=starter)
    mine = APIClient()
    mine.force_authenticate(starter)
    addresses = {
        "interrupt": scenes.url(row, "events"),
        "turn": turn_url(row.turn, "events/"),
        "steps": turn_url(row.turn, "steps/"),
    }
    expected: dict[str, tuple[APIClient, dict[str, int]]] = {
        "starter": (mine, {"interrupt": 404, "turn": 200, "steps": 200}),
        "viewer": (
            client("viewer", "view_pendinginterrupt"),
            {"interrupt": 200, "turn": 404, "steps": 404},
        ),
        "turns": (
            client("turns", "view_agentturn"),
            {"interrupt": 404, "turn": 200, "steps": 200},
        ),
        "stranger": (
            client("stranger"),
            {"interrupt": 404, "turn": 404, "steps": 404},
        ),
        "anonymous": (APIClient(), {"interrupt": 401, "turn": 401, "steps": 401}),
    }

    for name, (caller, statuses) in expected.items():
        for what, status in statuses.items():
            assert caller.get(addresses[what]).status_code == status, (name, what)
            assert caller.post(addresses[what]).status_code in (401, 405)


def test_an_agent_reads_its_own_trail_without_what_reviewers_note() -> None:
    cast = matrix.Cast()
    row = cast.remote_in_doubt()
    note = "Asked the bank; do not tell."
    services.settle(row.pk, "give_up", by=cast.users["settler"], via="x", note=note)

    shown = cast.callers["owner"].get(scenes.url(row, "events"))
    whole = cast.callers["settler"].get(scenes.url(row, "events"))

    assert shown.status_code == 200
    assert note not in shown.content.decode()
    assert note in whole.content.decode()
    last, full = shown.json()["results"][-1], whole.json()["results"][-1]
    assert (last["type"], last["redacted"]) == ("settled_gave_up", True)
    assert {**last, "detail": None, "redacted": False} == {**full, "detail": None}


def test_a_turns_trail_is_its_own(root: APIClient) -> None:
    row = scenes.cancelled()

    body = root.get(turn_url(row.turn, "events/")).json()

    assert [one["type"] for one in body["results"]] == ["turn_cancelled"]
    assert InterruptEvent.objects.filter(subject_id=row.pk).count() == 2


@pytest.fixture
def queues(people: dict[str, Any]) -> None:
    ReviewQueue.objects.create(slug="api-team", title="The team").users.add(
        people["superuser"]
    )
    ReviewQueue.objects.create(slug="open-to-all", requester_may_decide=True)
    scenes.pending()
    scenes.pending()
    scenes.cancelled()
    scenes.pending("api_flaky", {"order": "A-1"})


def test_queues_say_how_many_wait_and_where_one_may_decide(
    queues: None, client_of: Any
) -> None:
    def told(role: str) -> dict[str, tuple[int, bool]]:
        answer = client_of(role).get("/api/queues/")
        assert answer.status_code == 200
        assert b"superuser" not in answer.content
        return {
            one["slug"]: (one["open"]["count"], one["may_decide"])
            for one in answer.json()["results"]
        }

    everything = {"api-team": (1, True), "default": (2, True), "open-to-all": (0, True)}
    assert told("superuser") == everything
    assert told("reviewer") == {"default": (2, True), "open-to-all": (0, True)}
    assert told("viewer") == {"default": (2, False), "open-to-all": (0, False)}
    assert told("stranger") == {}
    assert client_of("anonymous").get("/api/queues/").status_code == 401


def test_queues_are_shown_as_they_are_and_in_pages(
    queues: None, client_of: Any
) -> None:
    caller = client_of("superuser")

    first = caller.get("/api/queues/?page_size=1").json()
    second = caller.get(first["next"]).json()

    assert first["results"] == [
        {
            "slug": "api-team",
            "title": "The team",
            "open": {"count": 1, "capped": False},
            "may_decide": True,
            "requester_may_decide": False,
        }
    ]
    assert [one["slug"] for one in second["results"]] == ["default"]
    for query in ("after=%00", "order=slug", "page_size=0"):
        assert caller.get(f"/api/queues/?{query}").status_code == 400


def test_turns_are_listed_and_filtered(people: dict[str, Any], client_of: Any) -> None:
    own = scenes.pending(by=people["requester"]).turn
    over = scenes.resolved().turn
    ended = scenes.cancelled().turn
    assert own is not None
    assert over is not None
    assert ended is not None
    everybody = client_of("superuser")

    def found(query: str, caller: APIClient = everybody) -> list[AgentTurn]:
        answer = caller.get(f"{scenes.TURNS}?{query}")
        assert answer.status_code == 200, answer.json()
        pks = [one["id"] for one in answer.json()["results"]]
        return [one for pk in pks for one in (own, over, ended) if str(one.pk) == pk]

    at = over.created_at.isoformat().replace("+00:00", "Z")
    assert found("") == [ended, over, own]
    assert found("ordering=created_at") == [own, over, ended]
    assert found("status=suspended&status=cancelled") == [ended, own]
    assert found("agent=api_agent&status=completed") == [over]
    assert found("agent=nobody") == []
    assert found(f"thread={over.thread_id}") == [over]
    assert found(f"parent={own.pk}") == []
    assert found(f"started_after={at}&started_before=9999-01-01T00:00:00Z") == [
        ended,
        over,
    ]
    assert found("requested_by=me") == []
    mine = client_of("requester")
    assert found("", mine) == found("requested_by=me", mine) == [own]
    assert "input" not in everybody.get(scenes.TURNS).json()["results"][0]
    for query in (
        "status=open",
        "requested_by=you",
        "parent=7",
        "thread=%00",
        "started_after=now",
        "ordering=status",
        "tool=x",
    ):
        answer = everybody.get(f"{scenes.TURNS}?{query}")
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed")

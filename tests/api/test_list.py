"""The list: filters that refuse what they cannot read, and pages that hold still."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hitl_approvals import services
from hitl_approvals.api import filters, pagination
from hitl_approvals.models import PendingInterrupt, ReviewQueue
from tests.api import scenes


@pytest.fixture
def rows(people) -> dict[str, PendingInterrupt]:
    made = {name: scenes.make(name) for name in scenes.STATES}
    made["question"] = scenes.question({"text": "How many?"})
    return made


DECIDED = {"decided", "resolved", "expired", "in_doubt", "cancelled"}
FILTERS: list[tuple[str, set[str] | None]] = [
    ("", None),
    ("turn=&queue=&search=&open=&requested_after=", None),
    ("status=pending", {"pending", "overdue", "question"}),
    ("status=decided&status=resolved", {"decided", "expired", "resolved"}),
    ("status=in_doubt", {"in_doubt"}),
    ("open=true", {"pending", "overdue", "question", "in_doubt"}),
    ("open=false", {"decided", "resolved", "cancelled", "expired"}),
    ("decision=approve", {"decided", "resolved", "in_doubt"}),
    ("decision=expire", {"expired"}),
    ("queue=nowhere", set()),
    ("tool=api_flaky", {"in_doubt"}),
    ("agent=nobody", set()),
    ("thread=nothing", set()),
    ("tool=api_flaky&status=pending", set()),
    ("search=flaky", {"in_doubt"}),
    ("search=FLAKY", {"in_doubt"}),
    ("search=api_agent", None),
    ("search=flaky refund", set()),
    ("search=%25", set()),
    ("search=_", None),
    ("search=lost", set()),
    ("queue=default&queue=nowhere", None),
    ("tool=api_flaky&tool=api_login", {"in_doubt"}),
    ("agent=nobody&agent=api_agent", None),
    ("kind=question", {"question"}),
    ("kind=question&status=decided", set()),
    ("priority=0", None),
    ("priority=1", set()),
    ("priority=-32768", None),
    ("client=nobody", set()),
    (
        "decision=approve&decision=expire",
        {"decided", "resolved", "in_doubt", "expired"},
    ),
    ("expires_after=2001-01-01T00:00:00Z", {"overdue", "expired"}),
    ("expires_before=2001-01-01T00:00:00Z", set()),
    ("ordering=expires_at", {"overdue"}),
    ("ordering=expires_at&expires_before=2001-01-01T00:00:00Z", set()),
    ("ordering=expires_at&status=decided", set()),
    ("decided_before=9999-12-31T23:59:59Z", DECIDED),
    ("ordering=decided_at", DECIDED),
    ("ordering=-decided_at&decided_after=9999-12-31T23:59:59Z", set()),
    ("ordering=decided_at&open=true", {"in_doubt"}),
    ("tag=money", set()),
    ("format=json", None),
    ("requested_after=9999-12-31T23:59:59Z", set()),
    ("requested_before=0001-01-02T00:00:00Z", set()),
]


def names(response, rows) -> set[str]:
    by_id = {str(row.pk): name for name, row in rows.items()}
    return {by_id[each["id"]] for each in response.json()["results"]}


def test_each_filter_keeps_what_it_says(rows, client_of):
    client = client_of("superuser")

    for query, kept in FILTERS:
        response = client.get(f"{scenes.LIST}?{query}")
        assert response.status_code == 200, query
        assert names(response, rows) == (set(rows) if kept is None else kept), query


def test_a_row_is_found_by_its_turn_its_thread_and_its_time(rows, client_of):
    client = client_of("superuser")
    row = rows["resolved"]
    thread = row.turn.thread_id
    moment = row.requested_at.isoformat().replace("+00:00", "Z")

    for query in (
        f"turn={row.turn_id}",
        f"thread={thread}",
        f"search={row.pk}",
        f"search={row.turn_id}",
        f"search={str(row.pk)[:-1]}x {row.pk}",
        f"search={thread[:13]}",
    ):
        found = names(client.get(f"{scenes.LIST}?{query}"), rows)
        assert found == ({"resolved"} if "x " not in query else set()), query
    after = names(client.get(f"{scenes.LIST}?requested_after={moment}"), rows)
    before = names(client.get(f"{scenes.LIST}?requested_before={moment}"), rows)
    assert "resolved" in after
    assert after | before == set(rows)
    assert after & before == set()


def test_the_queue_is_a_filter(reviewer):
    ReviewQueue.objects.create(slug="api-team")
    scenes.pending()
    row = scenes.pending("api_flaky", {"order": "A-1"})

    listed = reviewer.get(f"{scenes.LIST}?queue=api-team").json()["results"]

    assert [each["id"] for each in listed] == [str(row.pk)]


def cursor(moment: str) -> str:
    text = json.dumps([moment, "00000000-0000-0000-0000-000000000000", 0])
    return urlsafe_b64encode(text.encode()).decode()


UNREADABLE: list[tuple[str, str]] = [
    ("status=open", "status"),
    ("status=", "status"),
    ("status=pending&status=nonsense", "status"),
    ("open=maybe", "open"),
    ("decision=approved", "decision"),
    ("turn=7", "turn"),
    ("turn=%00", "turn"),
    ("queue=%00", "queue"),
    ("agent=a%00b", "agent"),
    ("tool=%00", "tool"),
    ("thread=%00", "thread"),
    ("search=%00", "search"),
    ("search=" + "x" * 201, "search"),
    ("unknown=parameter&status=in_doubt", "unknown"),
    ("statsu=pending", "statsu"),
    ("%00=1", "\\x00"),
    ("turn=&turn=", "turn"),
    ("cursor=x&cursor=y", "cursor"),
    ("kind=call", "kind"),
    ("priority=high", "priority"),
    ("priority=1.5", "priority"),
    ("priority=40000", "priority"),
    ("queue=a&queue=%00", "queue"),
    ("tag=%00", "tag"),
    ("tag=%2Ca", "tag"),
    ("tool=" + "&tool=".join("abcdefghijklmnopqrstu"), "tool"),
    ("client=%00", "client"),
    ("expires_after=soon", "expires_after"),
    ("decided_before=2026-01-01", "decided_before"),
    ("ordering=expires_at&cursor=" + cursor("2026-01-01T00:00:00Z"), "cursor"),
    ("requested_after=yesterday", "requested_after"),
    ("requested_after=2026-02-30T00:00:00Z", "requested_after"),
    ("requested_after=2026-01-01T00:00:00", "requested_after"),
    ("requested_after=0001-01-01T00:00:00%2B14:00", "requested_after"),
    ("requested_before=9999-12-31T23:59:59-14:00", "requested_before"),
    ("requested_before=%00", "requested_before"),
    ("page_size=0", "page_size"),
    ("page_size=201", "page_size"),
    ("page_size=-1", "page_size"),
    ("page_size=x", "page_size"),
    ("page_size=%C2%B2", "page_size"),
    ("page_size=" + "9" * 5000, "page_size"),
    ("ordering=reason", "ordering"),
    ("ordering=id%3Bdrop", "ordering"),
    ("cursor=", "cursor"),
    ("cursor=nonsense", "cursor"),
    ("cursor=%00", "cursor"),
    ("cursor=%F0%9F%98%80", "cursor"),
    ("cursor=bnVsbA==", "cursor"),  # null
    ("cursor=WzEsMiwzXQ==", "cursor"),  # [1,2,3]
    ("cursor=W1tdLFtdLFtdXQ==", "cursor"),  # [[],[],[]]
    ("cursor=" + cursor("2026-01-01T00:00:00"), "cursor"),
    ("cursor=" + cursor("0001-01-01T00:00:00+14:00"), "cursor"),
    ("cursor=" + cursor("9999-12-31T23:59:59-14:00"), "cursor"),
    ("cursor=" + cursor("2026-02-30T00:00:00+00:00"), "cursor"),
    ("cursor=" + "W" * 10_000, "cursor"),
]


@pytest.mark.parametrize(
    ("query", "loc"), UNREADABLE, ids=[q[:40] for q, _ in UNREADABLE]
)
def test_what_cannot_be_read_is_refused_by_name(reviewer, query, loc):
    response = reviewer.get(f"{scenes.LIST}?{query}")

    body = response.json()
    assert (response.status_code, body["code"]) == (400, "malformed")
    assert [one["loc"] for one in body["errors"]] == [loc]
    assert body["interrupt"] is None
    assert body["detail"]


def test_a_tag_is_found_to_the_letter(reviewer):
    tags = {
        "one": ["money"],
        "two": ["a", "money", "z"],
        "case": ["Money"],
        "longer": ["money!", "mone"],
        "quoted": ['x"money"', '"money"', 'a,"money",b'],
        "odd": ["100%", "a_b", "ünïcode", "back\\slash"],
        "none": [],
    }
    rows = {name: scenes.pending() for name in tags}
    for name, row in rows.items():
        PendingInterrupt.objects.filter(pk=row.pk).update(tags=tags[name])

    def found(*wanted: str) -> set[str]:
        answer = reviewer.get(scenes.LIST, {"tag": list(wanted)})
        assert answer.status_code == 200, answer.json()
        return names(answer, rows)

    assert found("money") == {"one", "two"}
    assert found("Money") == {"case"}
    assert found("money", "z") == {"two"}
    assert found("money", "nothing") == set()
    assert found("mone") == {"longer"}
    assert found('"money"') == {"quoted"}
    for odd in ("100%", "a_b", "ünïcode", "back\\slash"):
        assert found(odd) == {"odd"}
    assert found("%", "_") == set()


@pytest.mark.parametrize("ordering", ["-requested_at", "requested_at"])
@pytest.mark.parametrize("status", ["", "&status=pending&status=decided"])
def test_a_filter_without_an_index_looks_at_so_many_rows_a_page(
    reviewer, monkeypatch, ordering, status
):
    monkeypatch.setattr(pagination, "CHUNK", 2)
    monkeypatch.setattr(pagination, "MOST_CHUNKS", 2)
    rows = [scenes.pending() for _ in range(11)]
    for row in (rows[2], rows[9]):
        PendingInterrupt.objects.filter(pk=row.pk).update(tags=["rare"])
    for row in rows[4:6]:
        services.decide(row.pk, {"type": "approve"}, by=None, via="python")

    with CaptureQueriesContext(connection) as queries:
        pages = walk(reviewer, f"tag=rare&page_size=1&ordering={ordering}{status}")

    wanted = [str(rows[2].pk), str(rows[9].pk)]
    shown = [pk for page in pages for pk in page]
    assert shown == (wanted if ordering == "requested_at" else wanted[::-1])
    assert [] in pages  # looked on, and found none within the bound
    assert all("LIMIT 2" in q["sql"] for q in queries if "hitl_kept" in q["sql"][:400])


def test_a_search_that_finds_much_goes_along_the_list(reviewer, monkeypatch):
    rows = [scenes.pending() for _ in range(5)]
    few = walk(reviewer, "search=refund&page_size=2")
    monkeypatch.setattr(filters, "MOST_SORTED", 3)
    monkeypatch.setattr(pagination, "CHUNK", 1)

    with CaptureQueriesContext(connection) as queries:
        many = walk(reviewer, "search=refund&page_size=2")

    assert any("hitl_kept" in query["sql"] for query in queries)
    for pages in (few, many):
        assert [pk for page in pages for pk in page] == [
            str(row.pk) for row in rows[::-1]
        ]


def test_the_soonest_limit_comes_first_and_pages_follow_it(reviewer):
    rows = [scenes.overdue() for _ in range(5)]
    for number, row in enumerate(rows):
        later = timezone.now() + timedelta(hours=5 - number)
        PendingInterrupt.objects.filter(pk=row.pk).update(expires_at=later)
    scenes.pending()

    pages = walk(reviewer, "ordering=expires_at&page_size=2")

    assert [pk for page in pages for pk in page] == [str(r.pk) for r in rows[::-1]]


def test_decisions_can_be_followed_in_the_order_they_were_made(reviewer):
    rows = [scenes.pending() for _ in range(4)]
    for row in rows[::-1]:
        services.decide(row.pk, {"type": "approve"}, by=None, via="python")

    pages = walk(reviewer, "ordering=decided_at&page_size=3")

    found = PendingInterrupt.objects.order_by("decided_at", "pk")
    assert [pk for page in pages for pk in page] == [str(row.pk) for row in found]


def walk(client, query: str, between=lambda: None) -> list[list[str]]:
    pages, address = [], f"{scenes.LIST}?{query}"
    while address:
        body = client.get(address).json()
        pages.append([each["id"] for each in body["results"]])
        address = body["next"]
        assert "count" not in body
        between()
    return pages


@pytest.mark.parametrize("ordering", ["requested_at", "-requested_at"])
def test_pages_hold_still_while_rows_arrive_and_leave(reviewer, ordering):
    # Calls of one batch are raised at one moment, so pages break within a moment too.
    calls = [scenes.call("api_refund", scenes.REFUND, f"c{n}") for n in range(7)]
    turn = scenes.suspended(*calls)
    rows = list(turn.interrupts.order_by("requested_at", "pk"))
    there = [str(row.pk) for row in rows]
    moved = iter(rows)

    def something_happens() -> None:
        scenes.pending()
        if (row := next(moved, None)) is not None:
            services.decide(
                row.pk, {"type": "reject", "reason": "no"}, by=None, via="python"
            )

    query = f"page_size=2&ordering={ordering}&thread={turn.thread_id}"
    pages = walk(reviewer, query, something_happens)

    seen = [pk for page in pages for pk in page]
    assert seen == (there if ordering == "requested_at" else there[::-1])
    assert [len(page) for page in pages] == [2, 2, 2, 1]


def test_a_filter_on_the_status_skips_none_while_rows_are_decided(reviewer):
    calls = [scenes.call("api_refund", scenes.REFUND, f"c{n}") for n in range(9)]
    rows = list(scenes.suspended(*calls).interrupts.order_by("pk"))
    seen: list[str] = []
    address = f"{scenes.LIST}?status=pending&page_size=2"

    while address:
        body = reviewer.get(address).json()
        for each in body["results"]:
            seen.append(each["id"])
            reviewer.post(each["url"] + "reject/", {"reason": "no"}, format="json")
        address = body["next"]

    assert sorted(seen) == sorted(str(row.pk) for row in rows)


def test_there_is_a_way_back(reviewer):
    calls = [scenes.call("api_refund", scenes.REFUND, f"c{n}") for n in range(5)]
    scenes.suspended(*calls)
    forward, addresses, address = [], [], f"{scenes.LIST}?page_size=2"
    while address:
        body = reviewer.get(address).json()
        forward.append([each["id"] for each in body["results"]])
        addresses.append(body["previous"])
        address = body["next"]

    back, address = [], addresses[-1]
    while address:
        body = reviewer.get(address).json()
        back.append([each["id"] for each in body["results"]])
        last, address = body, body["previous"]

    assert addresses[0] is None
    assert back == forward[:-1][::-1]
    assert last["next"]


def test_newest_comes_first(reviewer):
    old, new = scenes.pending(), scenes.pending()

    listed = reviewer.get(scenes.LIST).json()["results"]

    assert [each["id"] for each in listed] == [str(new.pk), str(old.pk)]


@pytest.mark.parametrize("role", ["superuser", "reviewer"])
def test_the_number_of_queries_does_not_grow_with_the_rows(client_of, people, role):
    counts = []
    for _ in range(2):
        for _ in range(3):
            scenes.pending(by=people["requester"])
        people[role] = type(people[role]).objects.get(pk=people[role].pk)
        client = client_of(role)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert client.get(scenes.LIST).status_code == 200
        counts.append(len(queries))
        # Not counted, and nothing long is fetched.
        assert not any("COUNT(" in query["sql"] for query in queries)
        listing = queries.captured_queries[-1]["sql"]
        assert '"input"' not in listing
        assert '"context"' not in listing

    assert counts[0] == counts[1]

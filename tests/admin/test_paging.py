from __future__ import annotations

from datetime import timedelta
from itertools import chain
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hitl_approvals import services
from hitl_approvals.decisions import Reject
from hitl_approvals.models import AgentTurn, DbNow, PendingInterrupt
from tests.admin.scenes import LIST, call, charge_in_doubt, refund

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.breaks_invariants,  # times are moved to have several at one moment
]
TURNS = "/admin/hitl_approvals/agentturn/"


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitl_approvals.admin.paging.PAGE", 2)


def rows_of(response: Any) -> list[PendingInterrupt]:
    return list(response.context["listing"].rows)


def walk(desk: Client, query: str, way: str, between: Any = lambda: None) -> list[Any]:
    pages = []
    while query:
        response = desk.get(f"{LIST}{query}")
        pages.append(rows_of(response))
        query = response.context[way]
        between()
    return pages


def three_parts() -> list[PendingInterrupt]:
    """Make a doubt, calls with a limit and calls without; those of a kind at one moment."""
    calm = [refund(order_id=f"A-{number}") for number in range(3)]
    hurried = [call("desk_hurry", {"service": str(number)}) for number in range(3)]
    doubt = charge_in_doubt()
    now = DbNow()
    for rows in (calm, hurried):
        found = PendingInterrupt.objects.filter(pk__in=[row.pk for row in rows])
        found.update(requested_at=now)
    PendingInterrupt.objects.filter(expires_at__isnull=False).update(
        expires_at=now + timedelta(minutes=9)
    )
    return [doubt, *hurried, *calm]


def test_pages_follow_each_other_through_the_three_parts(desk: Client) -> None:
    there = three_parts()

    pages = walk(desk, "?", "next_query")

    assert [row for page in pages for row in page] == there
    assert [len(page) for page in pages] == [2, 2, 2, 1]


def test_there_is_a_way_back_over_the_same_pages(desk: Client) -> None:
    three_parts()
    first = desk.get(LIST)
    query = first.context["next_query"]
    forward = [rows_of(first)]
    while query:
        response = desk.get(f"{LIST}{query}")
        forward.append(rows_of(response))
        query = response.context["next_query"]

    back = walk(desk, response.context["previous_query"], "previous_query")

    assert first.context["previous_query"] == ""
    assert back == forward[-2::-1]


@pytest.mark.parametrize("order", ["", "oldest", "newest"])
def test_what_arrives_or_leaves_meanwhile_moves_nothing(
    desk: Client, other_reviewer: User, order: str
) -> None:
    three_parts()
    there = [row for page in walk(desk, f"?o={order}", "next_query") for row in page]
    seen: list[PendingInterrupt] = []

    def something_happens() -> None:
        refund(order_id="new")
        call("desk_hurry", {"service": "new"})
        charge_in_doubt()
        for row in seen:
            row.refresh_from_db()
        gone = next((row for row in seen if row.status == "pending"), None)
        if gone is not None:
            services.decide(gone.pk, Reject("no"), by=other_reviewer, via="admin")

    query = f"?o={order}"
    for number in range(20):
        if not query:
            break
        response = desk.get(f"{LIST}{query}")
        seen += rows_of(response)
        query = response.context["next_query"]
        if number < 3:
            something_happens()

    shown = [row for row in seen if row in there]
    assert shown == there
    assert len(seen) == len({row.pk for row in seen})


@pytest.mark.parametrize("order", ["", "oldest"])
def test_decided_rows_have_pages_too(
    desk: Client, other_reviewer: User, order: str
) -> None:
    rows = [refund(order_id=str(number)) for number in range(5)]
    for row in rows:
        services.decide(row.pk, Reject("no"), by=other_reviewer, via="admin")

    pages = walk(desk, f"?view=decided&o={order}", "next_query")

    assert [*chain(*pages)] == (rows if order else rows[::-1])
    assert [len(page) for page in pages] == [2, 2, 1]


def test_a_place_keeps_the_filters(desk: Client) -> None:
    three_parts()

    pages = walk(desk, "?tool=desk_refund&o=newest", "next_query")

    tools = {row.tool_name for page in pages for row in page}
    assert tools == {"desk_refund"}
    assert [len(page) for page in pages] == [2, 1]


def test_a_way_back_that_ends_before_the_start_is_the_first_page(
    desk: Client, other_reviewer: User
) -> None:
    rows = [refund(order_id=str(number)) for number in range(4)]
    second = desk.get(f"{LIST}{desk.get(LIST).context['next_query']}")
    back = second.context["previous_query"]
    services.decide(rows[0].pk, Reject("no"), by=other_reviewer, via="admin")

    response = desk.get(f"{LIST}{back}")

    assert rows_of(response) == rows[1:3]
    assert response.context["previous_query"] == ""


@pytest.mark.parametrize(
    "place",
    [
        "nonsense",
        "~~",
        "9~2026-01-01T00:00:00Z~0199",
        "9~2026-01-01T00:00:00Z~01a2289aab157189a3ddedd3ff228f90",
        "-1~2026-01-01T00:00:00Z~01a2289aab157189a3ddedd3ff228f90",
        "1~0001-01-01T00:00:00+14:00~01a2289aab157189a3ddedd3ff228f90",
        "²~2026-01-01T00:00:00Z~01a2289aab157189a3ddedd3ff228f90",
        "1~2026-01-01T00:00:00Z\x00~01a2289aab157189a3ddedd3ff228f90",
        "1~" * 500,
    ],
)
@pytest.mark.parametrize("way", ["after", "before"])
def test_a_place_that_cannot_be_read_is_the_start(
    desk: Client, way: str, place: str
) -> None:
    row = refund()

    for query in (urlencode({way: place}), urlencode({way: place, "view": "all"})):
        response = desk.get(f"{LIST}?{query}")
        assert response.status_code == 200
        assert rows_of(response) == [row]
        assert desk.get(f"{LIST}?page=9").status_code == 200


def test_a_place_at_the_ends_of_the_calendar(desk: Client) -> None:
    row = refund()
    pk = "01a2289aab157189a3ddedd3ff228f90"

    first = desk.get(LIST, {"after": f"2~0001-01-01T00:00:00Z~{pk}"})
    last = desk.get(LIST, {"after": f"2~9999-12-31T23:59:59Z~{pk}"})

    assert rows_of(first) == [row]
    assert rows_of(last) == []


def test_a_later_page_asks_no_more_queries_than_the_first(desk: Client) -> None:
    three_parts()

    def queries(query: str) -> tuple[int, str]:
        with CaptureQueriesContext(connection) as found:
            response = desk.get(f"{LIST}{query}")
        assert not any("OFFSET" in one["sql"] for one in found)
        return len(found), response.context["next_query"]

    first, query = queries("?")
    while query:
        number, query = queries(query)
        # The last part is reached only on later pages, and a turn's name is asked once.
        assert number <= first + 2


def test_turns_have_places_too(boss: User, login: Any) -> None:
    turns = [refund(order_id=str(number)).turn for number in range(5)]
    client = login(boss)

    def pages(query: str, way: str) -> list[list[str]]:
        found = []
        while query:
            response = client.get(f"{TURNS}{query}")
            found.append([row.url for row in response.context["rows"]])
            query = response.context[way]
            last.append(response.context["previous_query"])
        return found

    last: list[str] = []
    forward = pages("?view=all", "next_query")
    back = pages(last[-1], "previous_query")

    assert AgentTurn.objects.count() == 5
    assert [f"{TURNS}{turn.pk}/change/" for turn in turns[::-1]] == [*chain(*forward)]
    assert [len(page) for page in forward] == [2, 2, 1]
    assert back == forward[-2::-1]

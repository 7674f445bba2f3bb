from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hitl_approvals import services
from hitl_approvals.decisions import Approve, Reject
from hitl_approvals.engine import run_turn
from hitl_approvals.models import DbNow, PendingInterrupt, ReviewQueue
from tests.admin.scenes import (
    LIST,
    ask,
    call,
    charge_in_doubt,
    refund,
    start,
    url,
)

pytestmark = pytest.mark.django_db(transaction=True)


def rows_of(response: Any) -> list[PendingInterrupt]:
    return list(response.context["listing"].rows)


def test_it_opens_on_what_is_open(desk: Client, other_reviewer: User) -> None:
    waits, decided, doubt = refund(), refund(), charge_in_doubt()
    services.decide(decided.pk, Reject("no"), by=other_reviewer, via="admin")

    assert rows_of(desk.get(LIST)) == [doubt, waits]


def test_each_saved_view_holds_its_rows_and_counts_them(
    desk: Client, other_reviewer: User
) -> None:
    waits, decided, doubt = refund(), refund(), charge_in_doubt()
    services.decide(decided.pk, Reject("no"), by=other_reviewer, via="admin")
    run_turn(decided.turn_id)

    views = {
        name: rows_of(desk.get(f"{LIST}?view={name}"))
        for name in ("open", "doubt", "decided", "all", "nonsense")
    }
    tabs = desk.get(LIST).context["listing"].tabs

    assert views == {
        "open": [doubt, waits],
        "doubt": [doubt],
        "decided": [decided],
        "all": [doubt, decided, waits],
        "nonsense": [doubt, waits],
    }
    assert [(tab.label, tab.count) for tab in tabs] == [
        ("Open", "2"),
        ("In doubt", "1"),
        ("Decided", "1"),
        ("All", "3"),
    ]


def test_the_most_urgent_stands_first_and_rows_of_one_turn_together(
    desk: Client,
) -> None:
    slow = refund()
    start(
        ("desk_refund", {**REFUND_ARGS, "order_id": "T-1"}),
        ("desk_hurry", {"service": "web"}),
    )
    hurry = PendingInterrupt.objects.get(tool_name="desk_hurry")

    response = desk.get(LIST)

    groups = response.context["groups"]
    assert [[row.id for row in group.rows] for group in groups] == [
        [
            hurry.pk,
            *PendingInterrupt.objects.filter(turn=hurry.turn)
            .exclude(pk=hurry.pk)
            .values_list("pk", flat=True),
        ],
        [slow.pk],
    ]
    page = response.content.decode()
    assert "One turn, 2 calls wait" in page
    assert "9 min left" in page or "10 min left" in page
    assert "then rejected" in page


REFUND_ARGS: dict[str, Any] = {"amount": "1", "currency": "EUR", "items": []}


def test_the_other_orders(desk: Client) -> None:
    first, second = refund(), call("desk_hurry", {"service": "web"})

    assert rows_of(desk.get(f"{LIST}?o=oldest")) == [first, second]
    assert rows_of(desk.get(f"{LIST}?o=newest")) == [second, first]


def test_filters_by_queue_tool_and_kind(desk: Client) -> None:
    ReviewQueue.objects.create(slug="vault")
    row, safe, question = refund(), call("desk_careful", {"what": "x"}), ask("Which?")

    def found(query: str) -> list[PendingInterrupt]:
        return rows_of(desk.get(f"{LIST}?{query}"))

    assert found("queue=vault") == [safe]
    assert found("tool=desk_refund") == [row]
    assert found("kind=question") == [question]
    assert found("kind=tool_call&queue=default") == [row]
    assert found("kind=nonsense&queue=default") == [row, question]
    assert (
        "Nothing matches these filters."
        in desk.get(f"{LIST}?queue=nowhere").content.decode()
    )


def test_search_finds_by_id_turn_tool_and_thread(desk: Client) -> None:
    row, other = refund(), call("desk_hurry", {"service": "web"})
    PendingInterrupt.objects.filter(pk=other.pk).update(thread_id="chat-77")

    def found(text: str) -> list[PendingInterrupt]:
        return rows_of(desk.get(LIST, {"q": text}))

    assert found(str(row.pk)) == [row]
    assert found(f" {row.turn_id} ") == [row]
    assert found("REFUND") == [row]
    assert found("chat-7") == [other]
    assert found("%") == []
    assert found("a\x00b") == []
    assert found("'\"><script>") == []


def test_a_row_says_what_would_run_for_whom(desk: Client, viewer: User) -> None:
    refund(by=viewer)

    page = desk.get(LIST).content.decode()

    assert (
        '<span class="desk-k">order_id</span> <bdi class="desk-val">A-1042</bdi>'
        in page
    )
    assert "2 items" in page
    assert "more</span>" in page
    assert "tok_8d7e6f5a4b3c" not in page
    assert "for viewer" in page
    assert page.index("order_id</span>") < page.index("amount</span>")


def test_a_decided_row_says_who_and_what_became_of_it(
    desk: Client, other_reviewer: User
) -> None:
    row = refund()
    services.decide(row.pk, Approve(), by=other_reviewer, via="admin")
    run_turn(row.turn_id)

    page = desk.get(f"{LIST}?view=decided").content.decode()

    assert "by priya.nair; ran once, resolved" in page


def test_a_doubt_shows_what_ran_and_not_what_was_proposed(
    desk: Client, other_reviewer: User
) -> None:
    row = call("desk_charge", {"customer": "C-1", "amount": "89.90"})
    services.decide(
        row.pk,
        {"type": "edit", "args": {"customer": "C-1", "amount": "12.00"}},
        by=other_reviewer,
        via="admin",
    )
    run_turn(row.turn_id)

    pages = [desk.get(LIST).content.decode(), desk.get(url(row)).content.decode()]

    for page in pages:
        assert "12.00" in page
        assert "89.90" not in page
        assert "may have run, or not" in page


@pytest.mark.parametrize(
    "query", ["", "?view=all", "?view=decided", "?q=refund", "?o=oldest"]
)
def test_the_number_of_queries_does_not_grow_with_the_rows(
    desk: Client, other_reviewer: User, query: str
) -> None:
    def scene() -> None:
        refund(by=other_reviewer)
        start(
            ("desk_refund", {**REFUND_ARGS, "order_id": "T-1"}),
            ("desk_hurry", {"service": "web"}),
        )
        ask("Which?")
        decided = refund()
        services.decide(decided.pk, Approve(), by=other_reviewer, via="admin")

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            assert desk.get(f"{LIST}{query}").status_code == 200
        return len(found)

    scene()
    few = queries()
    for _ in range(4):
        scene()

    assert queries() == few
    assert few <= 20


def test_no_query_counts_or_reads_a_whole_table(desk: Client) -> None:
    refund()
    table = connection.ops.quote_name("hitl_approvals_pendinginterrupt")

    for view in ("open", "decided", "all"):
        with CaptureQueriesContext(connection) as found:
            desk.get(f"{LIST}?view={view}")

        about_rows = [one["sql"] for one in found if f"FROM {table}" in one["sql"]]
        assert about_rows
        by_key = f"{connection.ops.quote_name('id')} IN ("
        assert all("LIMIT" in sql or by_key in sql for sql in about_rows)


def test_a_count_beyond_the_cap_is_not_taken(
    desk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hitl_approvals.admin.paging.CAP", 2)
    for _ in range(3):
        refund()

    assert "2+" in desk.get(LIST).content.decode()


@pytest.mark.breaks_invariants
def test_ages_and_times_left_are_said_in_two_units(desk: Client) -> None:
    row = refund()
    PendingInterrupt.objects.filter(pk=row.pk).update(
        requested_at=DbNow() - timedelta(days=1, hours=2, minutes=3),
        expires_at=DbNow() + timedelta(hours=3, minutes=9, seconds=30),
    )

    page = desk.get(LIST).content.decode()

    assert "1 day 2 h" in page
    assert "3 h 9 min left" in page


def test_nobodys_note_is_shown_to_somebody_else(
    desk: Client, other_reviewer: User
) -> None:
    row = refund()
    services.decide(row.pk, Approve(), by=other_reviewer, via="admin")

    for done in (row.pk, "nonsense", "\x00"):
        page = desk.get(LIST, {"done": str(done)}).content.decode()
        assert "You approved" not in page

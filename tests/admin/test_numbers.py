from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings

from hitl_approvals import services
from hitl_approvals.admin import charts
from hitl_approvals.decisions import Approve, Edit, Reject, Respond
from hitl_approvals.engine import run_turn
from hitl_approvals.figures.decided import Period, Shares
from hitl_approvals.figures.report import report
from hitl_approvals.figures.timing import Times
from hitl_approvals.models import PendingInterrupt, ReviewQueue
from tests.admin.scenes import LIST, REFUND, ask, call, charge_in_doubt, expire, refund

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.breaks_invariants,  # times are moved into other days and ages
]
NUMBERS = f"{LIST}numbers/"
BERLIN = ZoneInfo("Europe/Berlin")


def decide(row: PendingInterrupt, decision: Any, **times: Any) -> PendingInterrupt:
    services.decide(row.pk, decision, by=None, via="python")
    run_turn(row.turn_id)
    if times:
        PendingInterrupt.objects.filter(pk=row.pk).update(**times)
    row.refresh_from_db()
    return row


def one_of_each() -> None:
    decide(refund(), Approve())
    decide(refund(), Approve())
    decide(refund(), Edit({**REFUND, "amount": "12.00"}))
    decide(refund(), Reject("no"))
    decide(ask("Which?"), Respond("This one."))
    late = refund()
    expire(late)
    services.sweep()
    late.refresh_from_db()
    assert late.decision == "expire"


def test_decisions_are_counted_by_tool_queue_and_day(
    desk: Client, reviewer: User
) -> None:
    one_of_each()

    found = report(reviewer, days=7, zone=BERLIN)

    counts = {"approve": 2, "edit": 1, "respond": 0, "reject": 1, "expire": 1}
    assert found.by_tool[("desk_refund", "default")].counts == counts
    assert found.by_tool[("", "default")].counts["respond"] == 1
    assert list(found.by_tool) == [("desk_refund", "default"), ("", "default")]
    assert found.by_queue["default"].total == found.decided.total == 6
    assert [shares.total for shares in found.by_day.values()] == [0] * 6 + [6]
    assert found.timing.decide.sample == 5  # the clock's own is no person's time
    assert not found.capped
    page = desk.get(NUMBERS).content.decode()
    assert "<code>desk_refund</code>" in page
    assert "Question" in page
    assert "40 %" in page


def test_what_is_open_is_counted_by_age(desk: Client, reviewer: User) -> None:
    for age in (1, 6, 20, 70, 600):
        row = refund()
        PendingInterrupt.objects.filter(pk=row.pk).update(
            requested_at=row.requested_at - timedelta(minutes=age)
        )
    charge_in_doubt()

    waiting = report(reviewer, days=7, zone=BERLIN).waiting

    assert (waiting.count, waiting.in_doubt) == (6, 1)
    assert waiting.by_age == [2, 1, 1, 1, 1]
    assert waiting.oldest is not None
    assert waiting.oldest > timedelta(hours=10)
    page = desk.get(NUMBERS).content.decode()
    assert "Open interrupts by age. under 5 min: 2, 5 min to 15 min: 1" in page
    assert "10 h" in page


def test_days_are_those_of_the_readers_zone_also_when_clocks_change(
    reviewer: User,
) -> None:
    # In Berlin, 25 October 2026 has 25 hours.
    moments = [
        datetime(2026, 10, 24, 23, 59, 59, tzinfo=BERLIN),
        datetime(2026, 10, 25, 0, 0, tzinfo=BERLIN),
        datetime(2026, 10, 25, 23, 59, 59, tzinfo=BERLIN),
        datetime(2026, 10, 26, 0, 0, tzinfo=BERLIN),
        datetime(2026, 10, 19, 23, 59, 59, tzinfo=BERLIN),
    ]
    for at in moments:
        decide(refund(), Approve(), decided_at=at, resolved_at=at)

    now = datetime(2026, 10, 26, 12, 0, tzinfo=BERLIN)
    rows = PendingInterrupt.objects.all()
    period = Period.last(rows, 7, now, BERLIN)

    counts = {day: one.total for day, one in period.by_day(BERLIN).items()}
    assert counts == {
        date(2026, 10, 20): 0,
        date(2026, 10, 21): 0,
        date(2026, 10, 22): 0,
        date(2026, 10, 23): 0,
        date(2026, 10, 24): 1,
        date(2026, 10, 25): 2,
        date(2026, 10, 26): 1,
    }


def test_more_decisions_than_are_counted_shorten_the_period_and_say_so(
    desk: Client, reviewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [decide(refund(), Approve()) for _ in range(4)]
    before = rows[1].decided_at
    monkeypatch.setattr("hitl_approvals.figures.decided.MOST", 2)

    found = report(reviewer, days=30, zone=BERLIN)

    assert found.capped
    assert found.since == before
    assert found.decided.total == 2
    assert len(found.by_day) == 1
    assert "There were more decisions than are counted here." in (
        desk.get(NUMBERS).content.decode()
    )


def test_a_decision_that_was_taken_back_does_not_count(reviewer: User) -> None:
    row = refund()
    services.decide(row.pk, Approve(), by=None, via="python")
    PendingInterrupt.objects.filter(pk=row.pk).update(execute_by=row.requested_at)
    services.sweep()
    row.refresh_from_db()
    assert (row.status, row.generation) == ("pending", 2)

    assert report(reviewer, days=7, zone=BERLIN).decided.total == 0


def test_only_the_queues_that_one_may_see_are_counted(
    reviewer: User, other_reviewer: User, boss: User, stranger: User
) -> None:
    ReviewQueue.objects.create(slug="vault").users.add(other_reviewer)
    call("desk_careful", {"what": "x"})
    decide(call("desk_careful", {"what": "y"}), Approve())
    refund()

    def seen(user: User) -> tuple[int, int, list[str]]:
        found = report(user, days=7, zone=BERLIN)
        queues = sorted(found.by_queue)
        return found.waiting.count, found.decided.total, queues

    assert seen(reviewer) == (1, 0, [])
    assert seen(other_reviewer) == (2, 1, ["vault"])
    assert seen(boss) == (2, 1, ["vault"])
    assert seen(stranger) == (0, 0, [])


def test_a_group_of_a_queue_counts_once(
    reviewer: User, login: Callable[..., Client]
) -> None:
    group = Group.objects.create(name="refunds")
    reviewer.groups.add(group)
    queue = ReviewQueue.objects.get(pk="default")
    queue.groups.add(group)
    queue.users.add(reviewer)
    refund()

    assert report(reviewer, days=7, zone=BERLIN).waiting.count == 1


def test_a_stranger_is_told_the_missing_right(
    stranger: User, viewer: User, login: Callable[..., Client]
) -> None:
    assert login(stranger).get(NUMBERS).status_code == 403
    assert login(viewer).get(NUMBERS).status_code == 200
    assert login(viewer).post(NUMBERS).status_code in (403, 405)
    assert Client().get(NUMBERS).status_code == 302


@pytest.mark.parametrize(
    ("asked", "days"), [("7", 7), ("90", 90), ("", 30), ("8", 30), ("x\x00", 30)]
)
def test_a_period_can_be_chosen(desk: Client, asked: str, days: int) -> None:
    response = desk.get(NUMBERS, {"days": asked})

    assert response.context["report"].asked == days
    assert len(response.context["days"]) == days
    assert f'<option value="{days}" selected>' in response.content.decode()


def test_the_number_of_queries_does_not_grow(desk: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            assert desk.get(NUMBERS).status_code == 200
        return len(found)

    empty = queries()
    one_of_each()
    one_of_each()
    ReviewQueue.objects.create(slug="other")

    assert queries() == empty <= 16


def charts_of(page: str) -> list[ET.Element]:
    return [ET.fromstring(one) for one in re.findall(r"<svg.*?</svg>", page)]


@override_settings(LANGUAGE_CODE="de", USE_THOUSAND_SEPARATOR=True)
def test_charts_are_plain_svg_with_their_numbers(desk: Client) -> None:
    one_of_each()

    page = desk.get(NUMBERS).content.decode()
    body = page[page.index('class="desk-stack"') :]

    drawn = charts_of(body)
    assert len(drawn) >= 8
    assert "style=" not in body
    assert "<script" not in body
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for chart in drawn:
        for element in chart.iter():
            for name in ("x", "y", "width", "height"):
                float(element.get(name, "0"))
        if chart.get("aria-hidden") != "true":
            assert chart.get("direction") == "ltr"
            assert chart.find("title") is not None
    used = set(re.findall(r"url\(#([^)]+)\)", body))
    assert used == {"desk-p-hatch", "desk-p-dots"} <= set(ids)


@override_settings(LANGUAGE_CODE="en")
def test_a_tools_name_is_text_in_every_chart_and_table(desk: Client) -> None:
    row = decide(refund(), Approve())
    hostile = '"><script>alert(1)</script>\u202e'
    PendingInterrupt.objects.filter(pk=row.pk).update(tool_name=hostile)

    page = desk.get(NUMBERS).content.decode()

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\u202e" not in page


def test_percentiles_are_values_that_occurred() -> None:
    spans = [timedelta(seconds=number) for number in range(1, 101)]

    assert Times.of(spans[::-1]) == Times(100, spans[49], spans[94])
    assert Times.of(spans[:1]) == Times(1, spans[0], spans[0])
    assert Times.of([]) == Times(0, None, None)


@pytest.mark.parametrize(
    ("most", "top"),
    [
        (0, 4),
        (3, 4),
        (5, 8),
        (9, 12),
        (93, 100),
        (100, 100),
        (101, 200),
        (260, 400),
        (997, 1000),
    ],
)
def test_a_scale_ends_at_a_round_number_above_its_bars(most: int, top: int) -> None:
    bar = charts.Bar("x", [charts.Piece(most, charts.Look("f"), "t")], str(most))

    chart = charts.standing([bar], key="k", title="t")

    assert f'text-anchor="end">{top}</text>' in chart
    heights = [
        float(one) for one in re.findall(r'width="40.0" height="([^"]+)"', chart)
    ]
    assert all(height <= 145 for height in heights)
    assert Shares().total == 0

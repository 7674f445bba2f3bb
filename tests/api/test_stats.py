from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from hitl_approvals import services
from hitl_approvals.figures.counting import CAP
from hitl_approvals.figures.decided import MOST
from hitl_approvals.figures.timing import SAMPLE
from hitl_approvals.models import ReviewQueue
from tests.api import scenes

pytestmark = pytest.mark.django_db(transaction=True)
STATS = "/api/stats/"
NONE = {"approve": 0, "edit": 0, "respond": 0, "reject": 0, "expire": 0}


def reject(row) -> None:
    services.decide(row.pk, {"type": "reject", "reason": "no"}, by=None, via="python")


def test_it_shows_what_is_open_and_how_the_last_days_were_decided(reviewer):
    scenes.pending()
    reject(scenes.pending())
    scenes.decided()

    body = reviewer.get(f"{STATS}?days=7").json()

    assert body["days"] == 7
    assert body["counted_at"].endswith("Z")
    waiting = body["open"]
    assert (waiting["count"], waiting["capped"]) == (1, False)
    assert waiting["in_doubt"] == {"count": 0, "capped": False}
    assert waiting["oldest_seconds"] >= 0
    ages = [
        {"from_seconds": 0, "to_seconds": 300},
        {"from_seconds": 300, "to_seconds": 900},
        {"from_seconds": 900, "to_seconds": 3600},
        {"from_seconds": 3600, "to_seconds": 14400},
        {"from_seconds": 14400, "to_seconds": None},
    ]
    assert waiting["by_age"] == [
        {**age, "count": int(not number), "capped": False}
        for number, age in enumerate(ages)
    ]
    decided = body["decided"]
    counts = {**NONE, "approve": 1, "reject": 1, "count": 2}
    assert {name: decided[name] for name in counts} == counts
    assert not decided["capped"]
    assert len(decided["by_day"]) == 7
    assert sum(day["count"] for day in decided["by_day"]) == 2
    (tool,) = decided["by_tool"]
    assert (tool["tool"], tool["queue"], tool["count"]) == ("api_refund", "default", 2)
    assert tool["time_to_decide"]["sample"] == 2
    (queue,) = decided["by_queue"]
    assert queue["queue"] == "default"
    times = body["time_to_decide"]
    assert times["sample"] == 2
    assert 0 <= times["median_seconds"] <= times["p95_seconds"]
    assert body["time_to_resume"]["sample"] == 0


def test_an_empty_site_has_no_numbers_and_a_question_has_no_tool(reviewer):
    empty = reviewer.get(STATS).json()
    row = scenes.question("Which?")
    services.decide(row.pk, {"type": "respond", "value": "x"}, by=None, via="python")
    asked = reviewer.get(STATS).json()

    assert empty["open"]["oldest_seconds"] is None
    assert empty["decided"]["by_tool"] == []
    assert empty["time_to_decide"] == {
        "sample": 0,
        "median_seconds": None,
        "p95_seconds": None,
    }
    assert len(empty["decided"]["by_day"]) == 30
    assert asked["decided"]["by_tool"][0]["tool"] is None


def test_it_counts_only_what_one_may_see(client_of, people, reviewer):
    ReviewQueue.objects.get(pk="default").users.add(people["superuser"])
    scenes.pending()
    reject(scenes.pending())

    outside = reviewer.get(STATS).json()
    inside = client_of("superuser").get(STATS).json()

    assert (outside["open"]["count"], outside["decided"]["count"]) == (0, 0)
    assert (inside["open"]["count"], inside["decided"]["count"]) == (1, 1)


def test_a_count_beyond_the_cap_says_so(reviewer, monkeypatch):
    monkeypatch.setattr("hitl_approvals.api.stats.CAP", 1)
    for _ in range(2):
        scenes.pending()

    waiting = reviewer.get(STATS).json()["open"]

    assert (waiting["count"], waiting["capped"]) == (1, True)


@pytest.mark.parametrize(
    "days", ["", "0", "8", "-7", "7.0", "%00", "9" * 5000, "%C2%B2"]
)
def test_another_period_is_refused_by_name(reviewer, days):
    response = reviewer.get(f"{STATS}?days={days}")

    body = response.json()
    assert (response.status_code, body["code"]) == (400, "malformed")
    assert [one["loc"] for one in body["errors"]] == ["days"]


def test_nobody_gets_in_without_an_account_and_nothing_is_posted(reviewer):
    from rest_framework.test import APIClient

    assert APIClient().get(STATS).status_code == 401
    assert reviewer.post(STATS, {}, format="json").status_code == 405


def test_the_number_of_queries_does_not_grow_with_the_rows(reviewer):
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            assert reviewer.get(STATS).status_code == 200
        return len(found)

    queries()  # the rights of the account are read once
    few = queries()
    for _ in range(3):
        scenes.pending()
        reject(scenes.pending())

    assert queries() == few <= 14


def test_the_page_names_the_limits_of_the_counts():
    page = (Path(__file__).parents[2] / "docs/reference/api/numbers.md").read_text()
    section = page.split("# Numbers\n", 1)[1]

    for limit in (CAP, MOST, SAMPLE):
        assert f"{limit:,}" in section

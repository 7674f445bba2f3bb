"""Rates by role: off unless set, told in our shape, and an id on every answer."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from rest_framework.test import APIClient

from hitl_approvals.api.throttles import SCOPES
from tests.api import scenes

START = {"agent": "api_agent", "input": {"calls": []}}


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def limit(settings: Any, **rates: str) -> None:
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "DEFAULT_THROTTLE_RATES": rates,
    }


def test_without_a_rate_nothing_is_counted(requester: APIClient) -> None:
    assert {requester.get(scenes.LIST).status_code for _ in range(20)} == {200}


@pytest.mark.parametrize("scope", SCOPES)
def test_each_rate_counts_its_own_calls_of_one_person(
    scope: str, settings: Any, requester: APIClient, reviewer: APIClient
) -> None:
    limit(settings, **{scope: "1/min"})
    row = scenes.pending()

    def calls(caller: APIClient) -> dict[str, list[int]]:
        claim = scenes.url(row, "claim")
        return {
            "hitl_read": [caller.get(scenes.LIST).status_code for _ in range(2)],
            "hitl_decide": [caller.post(claim).status_code for _ in range(2)],
            "hitl_start": [
                caller.post(scenes.TURNS, START, format="json").status_code
                for _ in range(2)
            ],
        }

    mine, others = calls(requester), calls(reviewer)

    for name, statuses in mine.items():
        assert (statuses[1] == 429) is (name == scope), (name, statuses)
    for name, statuses in others.items():
        assert statuses[0] != 429, (name, statuses)


def test_a_call_too_many_says_when_the_next_may_come(
    settings: Any, reviewer: APIClient
) -> None:
    limit(settings, hitl_decide="1/hour")
    row = scenes.pending()
    reviewer.post(scenes.url(row, "claim"))

    answer = reviewer.post(scenes.url(row, "approve"))

    assert answer.status_code == 429
    assert set(answer.json()) == {"code", "detail", "interrupt"}
    assert (answer.json()["code"], answer.json()["interrupt"]) == ("throttled", None)
    assert 3500 < int(answer["Retry-After"]) <= 3600
    assert scenes.events(row) == ["raised", "claimed"]


def test_every_answer_has_an_id(
    settings: Any, reviewer: APIClient, caplog: pytest.LogCaptureFixture
) -> None:
    row = scenes.pending()
    away = "00000000-0000-7000-8000-000000000000"
    approve = scenes.url(row, "approve")
    sent = {"X-Request-ID": "trace/7"}

    def ask(caller: APIClient, method: str, address: str, **more: Any) -> Any:
        headers = sent | more.pop("headers", {})
        return caller.generic(method, address, headers=headers, **more)

    json_ = {"content_type": "application/json"}
    answers = {
        200: ask(reviewer, "GET", scenes.LIST),
        401: ask(APIClient(), "POST", approve),
        404: ask(reviewer, "POST", f"{scenes.LIST}{away}/approve/"),
        405: ask(reviewer, "DELETE", scenes.url(row)),
        406: ask(reviewer, "GET", scenes.LIST, headers={"Accept": "text/html"}),
        400: ask(reviewer, "POST", approve, data=b"{", **json_),
        415: ask(reviewer, "POST", approve, data=b"x", content_type="text/plain"),
    }
    limit(settings, hitl_decide="0/min")
    with caplog.at_level(logging.INFO, "hitl_approvals.api"):
        answers[429] = ask(reviewer, "POST", approve)

    for status, answer in answers.items():
        assert answer.status_code == status
        assert answer["X-Request-ID"] == "trace/7"
    insane = reviewer.get(scenes.LIST, headers={"X-Request-ID": "a b"})
    assert re.fullmatch("[0-9a-f]{32}", insane["X-Request-ID"])
    (record,) = [one for one in caplog.records if one.name == "hitl_approvals.api"]
    assert record.getMessage() == f"POST {approve}: 429, request trace/7"
    assert record.__dict__["request_id"] == "trace/7"

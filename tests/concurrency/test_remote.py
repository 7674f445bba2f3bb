"""Processes of a remote agent, reviewers and the clock that meet on one request."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

import pytest
from django.db import connection, transaction

from hitl_approvals import Approve, Reject, services
from hitl_approvals.exceptions import (
    AlreadyConsumed,
    HitlApprovalsError,
    InterruptExpired,
    KeyReused,
)
from hitl_approvals.models import InterruptEvent, PendingInterrupt, db_now_plus
from hitl_approvals.services import clients
from hitl_approvals.types import ConsumedDecision
from tests.concurrency.meeting import errors, together
from tests.invariants import assert_invariants
from tests.support import remote

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]
ROUNDS = int(os.environ.get("HITL_RACE_ROUNDS", "1"))
MEETINGS: dict[str, tuple[str, ...]] = {
    "ask": ("approve", "reject", "expire", "withdraw", "fetch"),
    "approved": ("fetch", "fetch too", "withdraw", "lapse"),
    "fetched": (
        *("succeeded", "failed", "unknown", "overdue", "withdraw", "fetch"),
        *("fetch too", "give back"),
    ),
    "in_doubt": ("succeeded", "happened", "give up", "overdue"),
}
ONCE = {"given_back", "resolved", "cancelled", "in_doubt", "approved", "expired"}
"""Of each of these events a request has one at most."""


def _verbs(row: PendingInterrupt) -> dict[str, Callable[[], Any]]:
    decide = partial(services.decide, row.pk, by=None, via="test")
    settle = partial(services.settle, row.pk, by=None, via="test")
    return {
        "approve": partial(decide, Approve()),
        "reject": partial(decide, Reject("no")),
        "expire": partial(_when_due, row, "expires_at"),
        "lapse": partial(_when_due, row, "execute_by"),
        "overdue": partial(_when_due, row, "outcome_due"),
        "withdraw": partial(remote.withdraw, row),
        "fetch": partial(remote.fetch, row),
        "fetch too": partial(remote.fetch, row, key="other"),
        "succeeded": partial(remote.report, row, "succeeded"),
        "failed": partial(remote.report, row, "failed"),
        "unknown": partial(remote.report, row, "unknown"),
        "give back": partial(remote.give_back, row),
        "happened": partial(settle, "happened", result=1),
        "give up": partial(settle, "give_up"),
    }


def _when_due(row: PendingInterrupt, column: str) -> None:
    open_ = PendingInterrupt.objects.filter(
        pk=row.pk, status__in=("pending", "decided")
    )
    open_.filter(**{f"{column}__isnull": False}).update(**{column: remote.PAST})
    services.sweep()


def _cases() -> list[Any]:
    return [
        pytest.param(situation, one, other, id=f"{situation}-{one}-{other}")
        for situation, verbs in MEETINGS.items()
        for one, other in combinations_with_replacement(verbs, 2)
    ]


@pytest.mark.parametrize(("situation", "one", "other"), _cases())
def test_two_that_meet_on_a_request_lose_nothing_and_double_nothing(
    situation: str, one: str, other: str
) -> None:
    for _round in range(ROUNDS):
        row = getattr(remote, situation)(
            remote.a_client(), expires_in=timedelta(hours=1)
        )
        verbs = _verbs(remote.fresh(row))

        results = together(verbs[one], verbs[other])

        for error in errors(results):
            assert isinstance(error, HitlApprovalsError), (one, other, error)
        assert_invariants()
        counted = Counter(remote.kinds(row))
        assert all(counted[kind] <= 1 for kind in ONCE), counted
        assert counted["consumed"] - counted["given_back"] <= 1
        fetched = {
            result.status
            for result in results
            if isinstance(result, ConsumedDecision) and not result.replayed
        }
        if fetched:
            after = remote.fresh(row)
            assert after.outcome_status not in ("withdrawn", "lapsed")


def test_of_many_processes_one_has_the_approval() -> None:
    for _round in range(8):
        row = remote.approved()
        fetch = partial(remote.fetch, row)

        results = together(*(partial(fetch, key=f"k{n}") for n in range(6)))

        losers = errors(results)
        assert len(losers) == 5
        assert all(isinstance(error, AlreadyConsumed) for error in losers), losers
        assert remote.kinds(row) == ["raised", "approved", "consumed"]


def test_one_key_that_comes_twice_at_once_gets_one_answer() -> None:
    for _round in range(8):
        row = remote.approved()
        fetch = partial(remote.fetch, row)

        results = together(fetch, fetch, fetch, fetch)

        assert errors(results) == []
        assert sorted(one.replayed for one in results) == [False, True, True, True]
        assert len({(one.args_digest, one.outcome_due) for one in results}) == 1
        assert remote.kinds(row) == ["raised", "approved", "consumed"]


def test_what_is_fetched_at_the_last_moment_did_not_lapse_and_the_other_way_round() -> (
    None
):
    ends: Counter[str] = Counter()
    for number in range(16):
        row = remote.approved()
        soon = db_now_plus(timedelta(milliseconds=2 * number))
        PendingInterrupt.objects.filter(pk=row.pk).update(execute_by=soon)

        fetched, *_swept = together(
            partial(remote.fetch, row), services.sweep, services.sweep
        )

        after = remote.fresh(row)
        if isinstance(fetched, Exception):
            assert isinstance(fetched, HitlApprovalsError), fetched
            assert after.consumed_at is None
            ends["missed"] += 1
        else:
            assert after.outcome_status == ""
            assert after.status == "decided"
            ends["fetched"] += 1
    assert ends.total() == 16


def test_one_request_that_is_sent_many_times_at_once_is_one_row() -> None:
    client = remote.a_client()
    for number in range(8):
        ask = partial(remote.ask, client, ref=f"same-{number}")

        results = together(ask, ask, ask, ask)

        assert errors(results) == []
        assert len({row.pk for row in results}) == 1
        assert remote.kinds(results[0]) == ["raised"]


def test_of_two_requests_under_one_ref_one_is_refused() -> None:
    client = remote.a_client()
    for number in range(8):
        ask = partial(remote.ask, client, ref=f"same-{number}")

        results = together(partial(ask, args={"a": 1}), partial(ask, args={"a": 2}))

        (error,) = errors(results)
        assert isinstance(error, KeyReused), error
        rows = PendingInterrupt.objects.filter(client_ref=f"same-{number}")
        assert rows.count() == 1


def test_a_client_that_is_needed_many_times_at_once_is_made_once() -> None:
    for number in range(4):
        ensure = partial(clients.ensure_client, f"shop-{number}")

        results = together(ensure, ensure, ensure, ensure)

        assert errors(results) == []
        assert len({client.pk for client in results}) == 1


def test_reports_of_one_outcome_are_one_event_however_often_they_come() -> None:
    for _round in range(4):
        row = remote.fetched()
        report = partial(remote.report, row, result={"id": 1})

        results = together(report, report, report)

        assert errors(results) == []
        assert sorted(one.replayed for one in results) == [False, True, True]
        told = InterruptEvent.objects.filter(subject_id=row.pk)
        assert told.filter(type="resolved").count() == 1
        assert told.filter(type="late_result").count() == 0


@pytest.mark.parametrize("situation", ["approved", "fetched", "ask"])
def test_the_sweeper_passes_by_a_row_that_somebody_holds(situation: str) -> None:
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("this database has one writer")
    row = getattr(remote, situation)(remote.a_client())
    column = {"approved": "execute_by", "fetched": "outcome_due", "ask": "expires_at"}
    remote.pass_time(row, column[situation])
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            PendingInterrupt.objects.select_for_update().get(pk=row.pk)
            held.set()
            assert done.wait(timeout=30)

    def sweep() -> Any:
        assert held.wait(timeout=30)
        try:
            return services.sweep()
        finally:
            done.set()

    _held, report = together(hold, sweep)

    assert (report.lapsed, report.doubted, report.expired) == (0, 0, 0)
    report = services.sweep()
    assert report.lapsed + report.doubted + report.expired == 1


def test_a_late_approval_is_not_fetched_while_nobody_swept() -> None:
    row = remote.approved()
    remote.pass_time(row, "execute_by")

    results = together(partial(remote.fetch, row), partial(remote.fetch, row, key="b"))

    assert all(isinstance(one, InterruptExpired) for one in results), results

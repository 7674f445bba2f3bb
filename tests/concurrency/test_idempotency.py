"""Requests under one key that come at one moment are one request."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User

from hitl_approvals import services, start_turn
from hitl_approvals.exceptions import KeyReused
from hitl_approvals.models import IdempotencyRecord, InterruptEvent, PendingInterrupt
from hitl_approvals.services.idempotency import once
from tests.concurrency import agents_that_race  # noqa: F401  registers the agent
from tests.concurrency.meeting import errors, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]
ROUNDS = 6


def _claim(pk: Any, by: User, minutes: int) -> bool:
    work = partial(services.claim, pk, by=by, via="test", minutes=minutes)
    return once("claim", pk, work, by=by, key="k", body=minutes)


def _waiting() -> Any:
    return PendingInterrupt.objects.get(turn=start_turn("racer", "one", run=True)).pk


def _claims(pk: Any) -> int:
    return InterruptEvent.objects.filter(interrupt_id=pk, type="claimed").count()


def test_four_that_come_together_under_one_key_are_done_once() -> None:
    root = User.objects.create_superuser("root")
    for number in range(1, ROUNDS + 1):
        pk = _waiting()

        replayed = together(*[partial(_claim, pk, root, 5)] * 4)

        assert sorted(replayed) == [False, True, True, True]
        assert (_claims(pk), IdempotencyRecord.objects.count()) == (1, number)


def test_of_two_requests_under_one_key_one_is_done() -> None:
    root = User.objects.create_superuser("root")
    for _round in range(ROUNDS):
        pk = _waiting()

        results = together(partial(_claim, pk, root, 5), partial(_claim, pk, root, 9))

        (refused,) = errors(results)
        assert isinstance(refused, KeyReused), refused
        assert False in results
        assert _claims(pk) == 1


def test_a_key_is_free_again_if_the_first_of_two_is_refused() -> None:
    root = User.objects.create_superuser("root")
    for _round in range(ROUNDS):
        pk = _waiting()

        results = together(partial(_claim, pk, root, -1), partial(_claim, pk, root, 9))

        assert results[1] is False
        assert _claims(pk) == 1
        assert _claim(pk, root, 9) is True

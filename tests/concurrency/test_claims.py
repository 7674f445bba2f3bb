"""Claims that meet claims, decisions and a cancel."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from hitl_approvals import Approve, services, start_turn
from hitl_approvals.exceptions import (
    ClaimedByAnother,
    InterruptCancelled,
    TransitionNotAllowed,
)
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from tests.concurrency import agents_that_race  # noqa: F401  registers the agent
from tests.concurrency.meeting import errors, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]
ROUNDS = 8


@pytest.fixture
def people() -> list[User]:
    right = Permission.objects.get(codename="decide_pendinginterrupt")
    made = [User.objects.create_user(f"reviewer{number}") for number in range(4)]
    for user in made:
        user.user_permissions.add(right)
    return made


def _waiting() -> tuple[AgentTurn, Any]:
    turn = start_turn("racer", "one", run=True)
    return turn, PendingInterrupt.objects.get(turn=turn).pk


def _kinds(pk: Any) -> Counter[str]:
    told = InterruptEvent.objects.filter(interrupt_id=pk)
    return Counter(told.values_list("type", flat=True))


def test_four_claims_at_once_have_one_holder(people: list[User]) -> None:
    for _round in range(ROUNDS):
        _turn, pk = _waiting()

        results = together(
            *(partial(services.claim, pk, by=one, via="test") for one in people)
        )

        losers = errors(results)
        assert len(losers) == 3
        row = PendingInterrupt.objects.get(pk=pk)
        assert row.assignee is not None
        for error in losers:
            assert isinstance(error, ClaimedByAnother), error
            assert error.claimed_by == row.assignee.get_username()
        assert _kinds(pk) == {"raised": 1, "claimed": 1}


def test_a_claim_meets_another_persons_decision(people: list[User]) -> None:
    holder, other = people[:2]

    for _round in range(ROUNDS * 2):
        turn, pk = _waiting()

        claimed, decided = together(
            partial(services.claim, pk, by=holder, via="test"),
            partial(services.decide, pk, Approve(), by=other, via="test"),
        )

        row = PendingInterrupt.objects.get(pk=pk)
        turn.refresh_from_db()
        if isinstance(decided, Exception):
            assert isinstance(decided, ClaimedByAnother), decided
            assert (row.status, row.assignee) == ("pending", holder)
            assert (turn.status, turn.undecided) == ("suspended", 1)
            assert _kinds(pk) == {"raised": 1, "claimed": 1}
        else:
            assert isinstance(claimed, TransitionNotAllowed), claimed
            assert (row.status, row.assignee) == ("decided", None)
            assert (turn.status, turn.undecided) == ("ready", 0)
            assert _kinds(pk) == {"raised": 1, "approved": 1}


def test_ones_own_claim_never_loses_ones_own_decision(people: list[User]) -> None:
    (one, *_) = people

    for _round in range(ROUNDS):
        turn, pk = _waiting()

        _claimed, decided = together(
            partial(services.claim, pk, by=one, via="test"),
            partial(services.decide, pk, Approve(), by=one, via="test", revision=1),
        )

        assert not isinstance(decided, Exception), decided
        assert PendingInterrupt.objects.get(pk=pk).status == "decided"
        turn.refresh_from_db()
        assert turn.status == "ready"


def test_a_cancel_withdraws_what_is_claimed_at_that_moment(people: list[User]) -> None:
    for _round in range(ROUNDS * 2):
        turn, pk = _waiting()

        cancelled, claimed, _other = together(
            partial(services.cancel, turn.pk, by=None, via="test"),
            partial(services.claim, pk, by=people[0], via="test"),
            partial(services.claim, pk, by=people[1], via="test"),
        )

        assert not isinstance(cancelled, Exception), cancelled
        if isinstance(claimed, Exception):
            assert isinstance(claimed, (InterruptCancelled, ClaimedByAnother)), claimed
        assert PendingInterrupt.objects.get(pk=pk).status == "cancelled"

"""Every pair of verbs that can meet, together, many times: nothing lost or doubled."""

from __future__ import annotations

import os
import threading
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import OperationalError, connections

from hitl_approvals import Approve, run_turn, services
from hitl_approvals.exceptions import AlreadyDecided, HitlApprovalsError
from hitl_approvals.models import InterruptEvent, PendingInterrupt
from tests.concurrency import pairs
from tests.concurrency.meeting import errors, together
from tests.invariants import AUTHORIZATIONS, assert_invariants

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]
ROUNDS = int(os.environ.get("HITL_RACE_ROUNDS", "1"))
"""How often each pair meets; `make races` lets them meet more often."""
CONNECTED = 30
"""How many of a hundred reviewers a server with this many workers serves at a time."""

MEETINGS: dict[str, tuple[str, ...]] = {
    "pending": ("approve", "reject", "edit", "expire", "cancel"),
    "approved": ("claim", "cancel", "lapse", "approve"),
    "in_the_tool": ("record", "revoke", "cancel", "claim", "lapse"),
    "in_doubt": (
        "record",
        "settle happened",
        "settle run again",
        "settle give up",
        "cancel",
        "claim",
    ),
    "stuck": ("record", "raise", "settle happened", "settle give up"),
}


def _cases() -> list[Any]:
    found = []
    for situation, verbs in MEETINGS.items():
        for one, other in combinations_with_replacement(verbs, 2):
            if one == other == "record":
                continue  # there is one worker in the tool
            found.append(
                pytest.param(situation, one, other, id=f"{situation}-{one}-{other}")
            )
    return found


@pytest.mark.breaks_invariants  # checked in every round, before times are moved
@pytest.mark.parametrize(("situation", "one", "other"), _cases())
def test_two_verbs_that_meet_lose_nothing_and_double_nothing(
    situation: str, one: str, other: str
) -> None:
    for _round in range(ROUNDS):
        scene = pairs.Scene()
        if situation != "pending":
            getattr(scene, situation)()

        results = together(scene.verb(one), scene.verb(other))
        if situation in ("in_the_tool", "in_doubt", "stuck"):
            scene.record()

        for error in errors(results):
            assert isinstance(error, HitlApprovalsError), (one, other, error)
            assert not isinstance(error, OperationalError)
        assert_invariants()
        ended = scene.finish()
        assert_invariants()
        assert ended in ("completed", "cancelled")
        allowed = InterruptEvent.objects.filter(
            subject_id=scene.row.pk, type__in=AUTHORIZATIONS
        ).count()
        assert len(pairs.EFFECTS) <= allowed
        row = PendingInterrupt.objects.get(pk=scene.row.pk)
        assert row.status in ("resolved", "cancelled", "in_doubt")
        if row.outcome_status == "succeeded":
            assert pairs.EFFECTS


def test_of_a_hundred_reviewers_one_wins_and_ninety_nine_are_told_the_truth() -> None:
    right = Permission.objects.get(codename="decide_pendinginterrupt")
    reviewers = [User.objects.create_user(f"reviewer{n}") for n in range(100)]
    for reviewer in reviewers:
        reviewer.user_permissions.add(right)
    scene = pairs.Scene()
    seats = threading.BoundedSemaphore(CONNECTED)

    def decide(user: User) -> Any:
        with seats:
            try:
                return services.decide(scene.row.pk, Approve(), by=user, via="test")
            finally:
                connections.close_all()

    results = together(*(partial(decide, user) for user in reviewers))

    losers = errors(results)
    assert len(losers) == 99
    row = PendingInterrupt.objects.get(pk=scene.row.pk)
    for error in losers:
        assert isinstance(error, AlreadyDecided), error
        assert error.decided_by == row.decided_by_label
    told = InterruptEvent.objects.filter(subject_id=row.pk, type="approved")
    assert told.count() == 1
    assert run_turn(scene.turn.pk) == "completed"
    assert pairs.EFFECTS == ["a"]

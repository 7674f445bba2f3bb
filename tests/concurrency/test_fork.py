"""Forks that are made while something else happens to the origin."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError, transaction

from hitl_approvals import Reject, request_call, run_turn, services
from hitl_approvals.exceptions import HitlApprovalsError
from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from tests.concurrency import pairs
from tests.concurrency.meeting import errors, together
from tests.invariants import AUTHORIZATIONS, assert_invariants

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]
ROUNDS = int(os.environ.get("HITL_RACE_ROUNDS", "1"))
MEETINGS: dict[str, tuple[str, ...]] = {
    "pending": ("approve", "expire", "cancel", "fork"),
    "approved": ("claim", "cancel", "lapse"),
    "in_the_tool": ("record", "revoke", "cancel"),
    "in_doubt": ("record", "settle happened", "settle run again", "settle give up"),
    "stuck": ("record", "raise", "settle happened"),
}


@pytest.mark.breaks_invariants  # checked in every round, before times are moved
@pytest.mark.parametrize(
    ("situation", "other"),
    [(situation, verb) for situation, verbs in MEETINGS.items() for verb in verbs],
)
def test_a_fork_takes_over_one_state_of_its_origin_and_disturbs_nothing(
    situation: str, other: str
) -> None:
    for _round in range(ROUNDS):
        scene = pairs.Scene()
        if situation != "pending":
            getattr(scene, situation)()
        fork = partial(services.fork, scene.turn.pk)

        results = together(fork, fork if other == "fork" else scene.verb(other))

        if situation in ("in_the_tool", "in_doubt", "stuck"):
            scene.record()
        for error in errors(results):
            assert isinstance(error, HitlApprovalsError), (other, error)
            assert not isinstance(error, OperationalError)
        assert not isinstance(results[0], Exception), results
        if other == "cancel":
            assert not isinstance(results[1], Exception), results
        assert_invariants()
        _end_forks(scene)
        assert scene.finish() in ("completed", "cancelled")
        assert_invariants()
        forks = AgentTurn.objects.filter(parent=scene.turn)
        told = InterruptEvent.objects.filter(
            subject_id=scene.turn.pk, type="turn_forked"
        )
        assert forks.count() == told.count() == 1 + (other == "fork")
        allowed = InterruptEvent.objects.filter(
            turn_id=scene.turn.pk, type__in=AUTHORIZATIONS
        ).count()
        assert len(pairs.EFFECTS) <= allowed
        assert not TurnStep.objects.filter(
            turn__parent__isnull=False, idempotency_key__isnull=False
        ).exists()


def _end_forks(scene: pairs.Scene) -> None:
    """Refuse what the forks ask: whatever has an effect is the origin's then."""
    for fork in AgentTurn.objects.filter(parent=scene.turn):
        row = PendingInterrupt.objects.get(turn=fork)
        assert row.status == "pending"
        services.decide(row.pk, Reject("the other branch"), by=None, via="test")
        assert run_turn(fork.pk) == "completed"


def test_of_two_with_one_key_one_forks() -> None:
    scene = pairs.Scene()
    fork = partial(services.fork, scene.turn.pk, key="k")

    first, second = together(fork, fork)

    assert first == second
    assert AgentTurn.objects.filter(parent=scene.turn).count() == 1
    told = InterruptEvent.objects.filter(type="turn_forked")
    assert told.count() == 1


def test_of_two_with_one_key_one_asks() -> None:
    ask: Any = partial(request_call, pairs.pair_send, {"text": "a"}, key="k")

    def in_a_transaction() -> Any:
        with transaction.atomic():
            return ask()

    first, second = together(in_a_transaction, ask)

    assert first == second
    assert PendingInterrupt.objects.count() == 1
    assert AgentTurn.objects.count() == 1

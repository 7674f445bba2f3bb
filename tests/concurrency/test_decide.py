"""Decisions that meet each other, a cancel, or the clock."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User

from hitl_approvals import Approve, Edit, Reject, run_turn, services, start_turn
from hitl_approvals.enums import EventType
from hitl_approvals.exceptions import (
    AlreadyDecided,
    HitlApprovalsError,
    InterruptCancelled,
    TransitionNotAllowed,
)
from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from tests.concurrency import agents_that_race
from tests.concurrency.meeting import errors, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]
DECISIONS = {EventType.APPROVED, EventType.EDITED, EventType.REJECTED}
ROUNDS = 8


def _reviewers(count: int) -> list[User]:
    right = Permission.objects.get(codename="decide_pendinginterrupt")
    made = []
    for number in range(count):
        user = User.objects.create_user(f"reviewer{number}")
        user.user_permissions.add(right)
        made.append(user)
    return made


def _suspended(prompt: str) -> tuple[AgentTurn, list[Any]]:
    turn = start_turn("racer", prompt, run=True)
    assert turn.status == "suspended", turn.last_error
    rows = PendingInterrupt.objects.filter(turn=turn).order_by("position")
    return turn, list(rows.values_list("pk", flat=True))


def test_three_reviewers_on_three_siblings_make_one_resume_and_three_effects() -> None:
    reviewers = _reviewers(3)

    for _round in range(ROUNDS):
        Group.objects.all().delete()
        agents_that_race.MODEL_CALLS.clear()
        turn, ids = _suspended("three")

        results = together(
            *(
                partial(services.decide, pk, Approve(), by=user, via="test")
                for pk, user in zip(ids, reviewers, strict=True)
            )
        )

        assert errors(results) == []
        turn.refresh_from_db()
        assert (turn.status, turn.undecided) == ("ready", 0)
        outcomes = together(*(partial(run_turn, turn.pk) for _ in range(3)))
        assert Counter(outcomes) == {"completed": 1, "dropped": 2}
        assert Group.objects.count() == 3
        assert len(agents_that_race.MODEL_CALLS) == 2
        types = InterruptEvent.objects.filter(turn_id=turn.pk).values_list(
            "type", flat=True
        )
        assert Counter(types) == {
            "raised": 3,
            "approved": 3,
            "resolved": 3,
            "turn_completed": 1,
        }


def test_six_on_one_call_make_one_winner_and_five_are_told() -> None:
    reviewers = _reviewers(6)

    for _round in range(ROUNDS):
        turn, (pk,) = _suspended("one")
        verbs = [Approve(), Approve(), Edit({"name": "x"}), Reject("no"), Reject("no")]

        results = together(
            *(
                partial(services.decide, pk, verb, by=user, via="test")
                for verb, user in zip([*verbs, Approve()], reviewers, strict=True)
            )
        )

        losers = errors(results)
        assert len(losers) == 5
        row = PendingInterrupt.objects.get(pk=pk)
        for error in losers:
            assert isinstance(error, AlreadyDecided), error
            assert error.decision == row.decision
            assert error.decided_by == row.decided_by_label != ""
            assert error.decided_at == row.decided_at
        told = InterruptEvent.objects.filter(interrupt_id=pk, type__in=DECISIONS)
        assert told.count() == 1
        turn.refresh_from_db()
        assert (turn.status, turn.undecided) == ("ready", 0)


def test_the_same_key_sent_twice_at_once_is_one_decision_and_one_answer() -> None:
    (reviewer,) = _reviewers(1)

    for _round in range(ROUNDS):
        _turn, (pk,) = _suspended("one")
        send = partial(
            services.decide, pk, Approve(), by=reviewer, via="test", key="click-1"
        )

        results = together(send, send, send, send)

        assert errors(results) == []
        assert sorted(one.replayed for one in results) == [False, True, True, True]
        assert len({(one.decision, one.revision) for one in results}) == 1
        told = InterruptEvent.objects.filter(interrupt_id=pk, type__in=DECISIONS)
        assert told.count() == 1


def test_cancel_racing_three_decisions_neither_deadlocks_nor_loses_the_turn() -> None:
    for _round in range(ROUNDS * 2):
        Group.objects.all().delete()
        turn, ids = _suspended("three")
        decide = [
            partial(services.decide, pk, Approve(), by=None, via="test") for pk in ids
        ]

        results = together(
            partial(services.cancel, turn.pk, by=None, via="test"), *decide
        )

        cancelled, decided = results[0], results[1:]
        assert not isinstance(cancelled, Exception), cancelled
        for error in errors(decided):
            assert isinstance(error, InterruptCancelled), error
        turn.refresh_from_db()
        assert turn.status == "cancelled"
        statuses = PendingInterrupt.objects.filter(turn=turn).values_list(
            "status", flat=True
        )
        assert set(statuses) == {"cancelled"}
        assert run_turn(turn.pk) == "dropped"
        assert Group.objects.count() == 0


def test_approval_meets_expiry_and_exactly_one_of_them_counts() -> None:
    for _round in range(ROUNDS):
        Group.objects.all().delete()
        turn, (pk,) = _suspended("one")
        _let_expire(pk)

        results = together(
            partial(services.decide, pk, Approve(), by=None, via="test"),
            services.sweep,
            services.sweep,
        )

        row = PendingInterrupt.objects.get(pk=pk)
        assert row.decision == "expire"
        assert isinstance(results[0], HitlApprovalsError)
        assert run_turn(turn.pk) == "completed"
        assert Group.objects.count() == 0
        kinds = InterruptEvent.objects.filter(interrupt_id=pk).values_list(
            "type", flat=True
        )
        assert Counter(kinds)["expired"] == 1


def _let_expire(pk: Any) -> None:
    from hitl_approvals.models import DbNow

    PendingInterrupt.objects.filter(pk=pk).update(expires_at=DbNow())


def test_cancel_meets_cancel_and_only_one_is_recorded() -> None:
    for _round in range(ROUNDS):
        turn, _ids = _suspended("three")
        cancel = partial(services.cancel, turn.pk, by=None, via="test")

        results = together(cancel, cancel, cancel)

        assert len(errors(results)) == 2
        for error in errors(results):
            assert isinstance(error, TransitionNotAllowed), error
        told = InterruptEvent.objects.filter(subject_id=turn.pk, type="turn_cancelled")
        assert told.count() == 1


def test_eight_claims_of_one_turn_have_one_winner_and_no_error() -> None:
    for _round in range(ROUNDS):
        Group.objects.all().delete()
        turn, (pk,) = _suspended("one")
        services.decide(pk, Approve(), by=None, via="test")

        outcomes = together(*(partial(run_turn, turn.pk) for _ in range(8)))

        assert Counter(outcomes) == {"completed": 1, "dropped": 7}
        assert Group.objects.count() == 1
        gated = TurnStep.objects.filter(turn=turn, kind="tool")
        assert list(gated.values_list("status", flat=True)) == ["succeeded"]


def test_turns_of_one_thread_run_one_after_the_other() -> None:
    turns = [
        start_turn("racer", "one", thread_id="shared", run=False) for _ in range(3)
    ]

    together(*(partial(run_turn, turn.pk) for turn in turns))

    statuses = Counter(AgentTurn.objects.values_list("status", flat=True))
    assert statuses == {"suspended": 1, "ready": 2}
    held = AgentTurn.objects.get(status="suspended")
    assert AgentTurn.objects.filter(blocked=True).count() == 2
    services.cancel(held.pk, by=None, via="test")
    assert AgentTurn.objects.filter(status="ready", blocked=False).count() == 1
    oldest = AgentTurn.objects.filter(status="ready").order_by("created_at", "pk")
    assert oldest[0].blocked is False

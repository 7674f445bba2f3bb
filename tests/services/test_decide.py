"""decide(): what is stored, what is replayed, and what the loser is told."""

from __future__ import annotations

import uuid

import pytest
from django.db import transaction

from hitl_approvals import Approve, Edit, Reject, dispatchers, services
from hitl_approvals.exceptions import (
    AlreadyDecided,
    InterruptCancelled,
    InterruptExpired,
    InterruptNotFound,
    KeyReused,
    SnapshotMismatch,
    StaleReview,
)
from hitl_approvals.models import AgentTurn, DbNow, PendingInterrupt
from hitl_approvals.services import decisions
from tests.support.agents import call
from tests.support.turns import (
    begin,
    decide,
    events,
    full_events,
    only,
    pass_expires_at,
    resume,
    waiting,
)

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
PAY = call("pay", "p", order="A", amount="1.00")


@pytest.fixture
def pending(world):
    return only(begin([MAIL]))


def fresh(row):
    return PendingInterrupt.objects.get(pk=row.pk)


def test_an_approval_stores_who_when_through_which_door_and_what_may_run(
    pending, reviewer
):
    receipt = services.decide(pending.pk, Approve(), by=reviewer, via="admin")

    row = PendingInterrupt.objects.annotate(now=DbNow()).get(pk=pending.pk)
    assert (row.status, row.decision) == ("decided", "approve")
    assert (row.decided_by_id, row.decided_by_label) == (reviewer.pk, "rita")
    assert row.decided_via == "admin"
    assert abs((row.now - row.decided_at).total_seconds()) < 5
    assert row.decision_digest == row.args_digest
    assert row.decision_args_text is None
    assert 86_000 < (row.execute_by - row.now).total_seconds() <= 86_400
    assert (row.revision, row.generation) == (2, 1)
    assert (receipt.interrupt_id, receipt.turn_id) == (row.pk, row.turn_id)
    assert (receipt.decision, receipt.revision, receipt.replayed) == (
        "approve",
        2,
        False,
    )


def test_the_event_tells_the_same_story(pending, reviewer):
    services.decide(pending.pk, Reject("no"), by=reviewer, via="admin")

    event = full_events(pending)[-1]
    assert (event.type, event.actor, event.actor_id, event.via) == (
        "rejected",
        "rita",
        str(reviewer.pk),
        "admin",
    )
    assert (event.status, event.decision, event.revision) == ("decided", "reject", 2)
    assert event.detail == {"reason": "no"}
    assert (event.digest_run, event.execute_by) == ("", None)


def test_the_last_decision_owes_a_run_and_the_ones_before_do_not(world):
    turn = begin([MAIL, PAY])
    first, second = waiting(turn)

    decide(first, Reject("no"))
    turn.refresh_from_db()
    assert (turn.status, turn.undecided) == ("suspended", 1)
    decide(second)

    turn.refresh_from_db()
    assert (turn.status, turn.undecided, turn.attempts) == ("ready", 0, 0)
    found = AgentTurn.objects.annotate(now=DbNow()).get(pk=turn.pk)
    assert found.next_run_at <= found.now


def test_a_tool_may_limit_the_time_to_start_itself(world):
    row = only(begin([call("ship", "s", speed="fast")]))

    decide(row)

    found = PendingInterrupt.objects.annotate(now=DbNow()).get(pk=row.pk)
    assert 590 < (found.execute_by - found.now).total_seconds() <= 600


def test_no_limit_to_start_is_no_limit(pending, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "EXECUTE_WITHIN": None}

    decide(pending)

    assert fresh(pending).execute_by is None
    assert full_events(pending)[-1].execute_by is None


def test_an_edit_that_changes_nothing_is_stored_as_an_approval(pending):
    receipt = decide(pending, Edit({"to": "a"}, reason="looked at it"))

    row = fresh(pending)
    assert receipt.decision == row.decision == "approve"
    assert row.decision_args_text is None
    assert row.reason == "looked at it"
    assert events(row) == ["raised", "approved"]


def test_trusted_code_is_recorded_as_system(pending):
    decide(pending)

    row = fresh(pending)
    assert (row.decided_by, row.decided_by_label, row.decided_via) == (
        None,
        "system",
        "test",
    )


def test_a_decision_is_taken_as_a_mapping_and_by_an_id_as_text(pending):
    services.decide(
        str(pending.pk), {"type": "reject", "reason": "no"}, by=None, via="api"
    )

    assert fresh(pending).reason == "no"


@pytest.mark.parametrize("second", [Approve(), Edit({"to": "b"}), Reject("no")])
def test_the_second_decision_is_refused_and_names_the_first(
    pending, reviewer, make_user, second
):
    other = make_user("otto", "decide_pendinginterrupt")
    services.decide(pending.pk, Reject("mine"), by=reviewer, via="admin")
    before = fresh(pending)

    with pytest.raises(AlreadyDecided) as refusal:
        services.decide(pending.pk, second, by=other, via="api")

    told = refusal.value
    assert (told.decision, told.decided_by) == ("reject", "rita")
    assert told.decided_at == before.decided_at
    assert told.context["status"] == "decided"
    assert "rita already decided this (reject) at" in told.detail
    after = fresh(pending)
    assert (after.reason, after.revision) == ("mine", before.revision)
    assert events(after) == ["raised", "rejected"]
    after.turn.refresh_from_db()
    assert after.turn.undecided == 0


def test_a_resolved_call_is_already_decided_too(pending):
    decide(pending)
    resume(pending.turn)

    with pytest.raises(AlreadyDecided) as refusal:
        decide(pending)

    assert refusal.value.context["status"] == "resolved"


def test_a_withdrawn_call_cannot_be_decided(pending):
    services.cancel(pending.turn_id, by=None, via="test")

    with pytest.raises(InterruptCancelled):
        decide(pending)

    assert events(pending) == ["raised", "cancelled"]


def test_a_call_whose_time_has_passed_cannot_be_decided(world, pending):
    pass_expires_at(pending)

    with pytest.raises(InterruptExpired):
        decide(pending)
    assert fresh(pending).status == "pending"

    services.sweep()
    with pytest.raises(InterruptExpired) as refusal:
        decide(pending)
    assert refusal.value.context["decision"] == "expire"
    assert events(pending) == ["raised", "expired"]


def test_time_that_passes_on_the_way_is_time_that_has_passed(pending, monkeypatch):
    """The row said in time when it was read, and is not any more when it is written."""
    translate = decisions.translate

    def slowly(*args):
        pass_expires_at(pending)
        return translate(*args)

    monkeypatch.setattr(decisions, "translate", slowly)

    with pytest.raises(InterruptExpired):
        decide(pending)
    assert fresh(pending).status == "pending"


def test_a_review_of_an_older_revision_is_refused(pending):
    with pytest.raises(StaleReview) as refusal:
        decide(pending, revision=0)

    assert (refusal.value.seen, refusal.value.current) == (0, 1)
    assert fresh(pending).status == "pending"
    decide(pending, revision=1)


@pytest.mark.parametrize("unknown", [uuid.uuid4(), str(uuid.uuid4()), "no uuid", ""])
def test_an_interrupt_that_is_not_there_is_not_found(world, db, unknown):
    with pytest.raises(InterruptNotFound):
        services.decide(unknown, Approve(), by=None, via="test")


@pytest.mark.parametrize(
    ("decision", "sentence"),
    [
        ({"type": "approved"}, "must be one of approve, reject, edit, respond"),
        ({}, "got none"),
        ("approve", "got a string"),
        (None, "got null"),
        ({"type": "reject"}, 'needs a "reason"'),
        ({"type": "reject", "reason": "  "}, "not blank"),
        ({"type": "edit"}, 'needs "args"'),
        ({"type": "edit", "args": [1]}, "got a list"),
        ({"type": "approve", "args": {}}, 'no field "args"'),
    ],
)
def test_a_malformed_decision_is_a_type_error_with_one_sentence(
    pending, decision, sentence
):
    with pytest.raises(TypeError) as refusal:
        services.decide(pending.pk, decision, by=None, via="test")

    assert sentence in str(refusal.value)
    assert fresh(pending).status == "pending"
    assert events(pending) == ["raised"]


def test_a_repeated_request_gets_the_stored_answer_and_writes_nothing(
    pending, reviewer
):
    def send():
        return services.decide(
            pending.pk, Reject("no"), by=reviewer, via="api", key="k", revision=1
        )

    first = send()
    second = send()
    resume(pending.turn)
    third = send()

    assert (first.replayed, second.replayed, third.replayed) == (False, True, True)
    assert first.decision == second.decision == third.decision == "reject"
    assert second.revision == first.revision
    assert events(pending) == ["raised", "rejected", "resolved"]


def test_a_key_with_another_decision_or_person_is_a_conflict(
    pending, reviewer, make_user
):
    other = make_user("otto", "decide_pendinginterrupt")
    services.decide(pending.pk, Reject("no"), by=reviewer, via="api", key="k")

    with pytest.raises(KeyReused):
        services.decide(pending.pk, Reject("never"), by=reviewer, via="api", key="k")
    with pytest.raises(KeyReused):
        services.decide(pending.pk, Reject("no"), by=other, via="api", key="k")
    with pytest.raises(AlreadyDecided):
        services.decide(pending.pk, Reject("no"), by=reviewer, via="api", key="other")
    assert events(pending) == ["raised", "rejected"]


def test_one_key_may_decide_two_calls(world):
    first, second = waiting(begin([MAIL, PAY]))

    decide(first, Reject("no"), key="k")
    assert decide(second, Approve(), key="k").replayed is False


def test_arguments_that_were_changed_behind_our_back_are_not_approved(pending):
    PendingInterrupt.objects.filter(pk=pending.pk).update(args_text='{"to":"b"}')

    for decision in (Approve(), Edit({"to": "c"}), Edit({"to": "b"})):
        with pytest.raises(SnapshotMismatch):
            decide(pending, decision)
    assert fresh(pending).status == "pending"

    decide(pending, Reject("somebody changed this"))
    assert events(pending) == ["raised", "rejected"]


def test_a_decision_joins_the_callers_transaction(
    pending, monkeypatch, django_capture_on_commit_callbacks
):
    hints = []
    monkeypatch.setattr(dispatchers, "wake", hints.append)

    capture = django_capture_on_commit_callbacks(execute=True)
    with capture as callbacks, transaction.atomic():
        decide(pending)
        assert fresh(pending).status == "decided"
        transaction.set_rollback(True)

    assert (callbacks, hints) == ([], [])
    assert fresh(pending).status == "pending"
    assert fresh(pending).turn.status == "suspended"
    assert events(pending) == ["raised"]


def test_the_hint_goes_out_only_after_the_commit(
    pending, monkeypatch, django_capture_on_commit_callbacks
):
    hints = []
    monkeypatch.setattr(dispatchers, "wake", hints.append)

    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        decide(pending)
        assert hints == []

    assert hints == [pending.turn_id]


def test_a_hint_that_fails_does_not_undo_or_hide_the_decision(
    pending, monkeypatch, django_capture_on_commit_callbacks, caplog
):
    def fail(turn_id):
        raise ConnectionError("no broker")

    monkeypatch.setattr(dispatchers, "wake", fail)

    with django_capture_on_commit_callbacks(execute=True):
        receipt = decide(pending)

    assert receipt.decision == "approve"
    assert fresh(pending).turn.status == "ready"

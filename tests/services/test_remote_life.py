"""A remote agent's request: decided, fetched by one process, reported, or taken back."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import transaction

from hitl_approvals import Approve, Edit, Reject, Respond, services, tool
from hitl_approvals.exceptions import (
    AlreadyConsumed,
    AlreadyDecided,
    DecisionNotAllowed,
    InterruptCancelled,
    InterruptExpired,
    InterruptNotFound,
    KeyReused,
    PayloadRejected,
    ReviewerNotAllowed,
    SnapshotMismatch,
    StaleReview,
    TransitionNotAllowed,
    UnsafeContext,
)
from hitl_approvals.models import PendingInterrupt, ReviewQueue
from hitl_approvals.registry import registry
from hitl_approvals.services import consuming, decisions
from tests.support.agents import call
from tests.support.remote import (
    ARGS,
    SCHEMA,
    a_client,
    approved,
    ask,
    ask_question,
    decided,
    events,
    fetch,
    fetched,
    fresh,
    give_back,
    in_doubt,
    kinds,
    pass_time,
    report,
    withdraw,
)
from tests.support.turns import begin, only

pytestmark = pytest.mark.django_db


# decide


def test_a_decision_is_recorded_as_on_any_other_row(reviewer):
    row = ask()

    receipt = services.decide(
        row.pk, Approve(), by=reviewer, via="admin", revision=1, key="click"
    )

    row = fresh(row)
    assert (row.status, row.decision, row.decided_by_label) == (
        "decided",
        "approve",
        "rita",
    )
    assert row.decision_digest == row.args_digest
    assert row.execute_by is not None
    assert (receipt.turn_id, receipt.revision) == (None, 2)
    again = services.decide(row.pk, Approve(), by=reviewer, via="admin", key="click")
    assert again.replayed
    with pytest.raises(KeyReused):
        services.decide(row.pk, Reject("no"), by=reviewer, via="admin", key="click")
    with pytest.raises(AlreadyDecided):
        services.decide(row.pk, Approve(), by=None, via="test")
    assert kinds(row) == ["raised", "approved"]


def test_revision_queue_rights_and_time_hold_as_on_any_other_row(make_user, reviewer):
    row = ask()
    with pytest.raises(StaleReview):
        services.decide(row.pk, Approve(), by=reviewer, via="admin", revision=7)
    viewer = make_user("vera", "view_pendinginterrupt")
    with pytest.raises(ReviewerNotAllowed):
        services.decide(row.pk, Approve(), by=viewer, via="admin")
    ReviewQueue.objects.create(slug="closed").users.add(viewer)
    with pytest.raises(InterruptNotFound):
        services.decide(ask(queue="closed").pk, Approve(), by=reviewer, via="admin")
    pass_time(row, "expires_at")
    with pytest.raises(InterruptExpired):
        services.decide(row.pk, Approve(), by=reviewer, via="admin")
    assert fresh(row).status == "pending"


def test_an_edit_has_to_fit_the_schema_that_came_with_the_call():
    row = ask(args_schema=SCHEMA, fixed=["order"])

    with pytest.raises(PayloadRejected) as caught:
        decided(row, Edit({**ARGS, "amount": "many"}))
    assert caught.value.errors[0]["loc"] == "amount"
    with pytest.raises(PayloadRejected) as caught:
        decided(row, Edit({**ARGS, "order": "8"}))
    assert caught.value.errors[0]["loc"] == "order"

    row = decided(row, Edit({**ARGS, "amount": 5}, reason="less"))

    assert row.decision == "edit"
    assert fetch(row).args == {**ARGS, "amount": 5}


def test_without_a_schema_an_edit_may_be_anything_that_json_holds():
    row = decided(ask(), Edit({"anything": [1, None]}))

    assert fetch(row).args == {"anything": [1, None]}


@pytest.fixture
def counted():
    """A tool of this process that returns a number, by the name of a remote one."""

    def count(order: str, amount: Decimal) -> int:
        return 0

    made = tool(name="count", effect="unsafe")(count)
    yield made
    registry.tools.pop("count")


def test_a_tool_here_of_the_same_name_has_no_say(counted):
    schema = counted.signature.args_schema
    sent = {"order": "7", "amount": "1.5"}
    row = ask(tool_name="count", args=sent, args_schema=schema)
    PendingInterrupt.objects.filter(pk=row.pk).update(
        schema_digest=counted.signature.schema_digest
    )

    decided(row, Edit({"order": "7", "amount": 2}))

    assert fetch(row).args == {"order": "7", "amount": 2}  # not the tool's own "2"
    report(row, "unknown")
    services.settle(row.pk, "happened", by=None, via="test", result="no number")
    assert fresh(row).outcome == "no number"


def test_only_what_was_offered_can_be_decided():
    with pytest.raises(DecisionNotAllowed):
        decided(ask(allowed_decisions=["approve", "reject"]), Edit({}))
    with pytest.raises(DecisionNotAllowed):
        decided(ask(), Respond(1))


# consume


def test_one_key_fetches_an_approval_and_gets_the_same_answer_at_any_time():
    row = approved()

    first = fetch(row, key="a")

    row = fresh(row)
    assert (row.status, row.revision) == ("decided", 2)
    assert row.consumed_at is not None
    assert (first.decision, first.args, first.args_digest) == (
        "approve",
        ARGS,
        row.args_digest,
    )
    assert (first.decided_by, first.decided_at) == ("system", row.decided_at)
    assert first.outcome_due == row.outcome_due
    assert (row.outcome_due - row.consumed_at).total_seconds() == pytest.approx(
        3600, 0.1
    )
    assert (first.status, first.replayed) == ("decided", False)
    assert kinds(row) == ["raised", "approved", "consumed"]
    told = events(row)[-1]
    assert (told.actor, told.status, told.digest_run) == (
        "client billing",
        "decided",
        row.args_digest,
    )

    pass_time(row, "execute_by")
    assert services.sweep().lapsed == 0
    again = fetch(row, key="a")
    assert (again.args, again.args_digest, again.replayed) == (
        ARGS,
        first.args_digest,
        True,
    )
    report(row, key="a")
    over = fetch(row, key="a")
    assert (over.args, over.status, over.replayed) == (ARGS, "resolved", True)


def test_another_key_is_refused_and_told_why():
    row = fetched(key="a")

    with pytest.raises(AlreadyConsumed, match="under another key"):
        fetch(row, key="b")

    assert kinds(row) == ["raised", "approved", "consumed"]


@pytest.mark.parametrize("key", ["k" * 65, "#1", "a\x00b", " ", "\ud800"])
def test_a_key_that_no_column_holds_is_as_good_as_any(key):
    row = approved()

    fetch(row, key=key)

    assert fetch(row, key=key).replayed
    assert fetch(row, key=fresh(row).consume_key).replayed
    for other in (key + "x", "k" * 66, "#2"):
        with pytest.raises(AlreadyConsumed):
            fetch(row, key=other)
    report(row, key=key)


def test_nothing_is_fetched_inside_a_transaction_that_may_be_undone():
    row = approved()

    with transaction.atomic():
        withdrawn = ask()
        withdraw(withdrawn)
        with pytest.raises(UnsafeContext, match="must not be called inside"):
            fetch(row)

    assert fresh(row).consumed_at is None


def test_nothing_is_fetched_before_somebody_decided():
    row = ask()

    with pytest.raises(TransitionNotAllowed, match="Nobody has decided"):
        fetch(row)

    assert fresh(row).consumed_at is None


def test_an_approval_is_fetched_before_its_time_is_over_or_not_at_all():
    row = approved()
    pass_time(row, "execute_by")

    with pytest.raises(InterruptExpired, match="not fetched in time"):
        fetch(row)

    row = fresh(row)
    assert (row.status, row.consumed_at) == ("decided", None)


def test_an_approval_whose_time_ends_between_reading_and_writing_is_not_fetched(
    monkeypatch,
):
    row = approved()
    look = consuming._runnable

    def slowly(found):
        pass_time(row, "execute_by")
        return look(found)

    monkeypatch.setattr(consuming, "_runnable", slowly)

    with pytest.raises(InterruptExpired):
        fetch(row)

    assert fresh(row).consumed_at is None


def test_what_is_withdrawn_between_reading_and_writing_is_not_fetched(monkeypatch):
    row = approved()
    look = consuming._runnable

    def slowly(found):
        withdraw(row)
        return look(found)

    monkeypatch.setattr(consuming, "_runnable", slowly)

    with pytest.raises(InterruptCancelled):
        fetch(row)

    assert kinds(row) == ["raised", "approved", "cancelled"]


def test_an_approval_without_a_limit_does_not_lapse(settings):
    settings.HITL_APPROVALS = {"EXECUTE_WITHIN": None}
    row = approved()

    assert services.sweep().lapsed == 0
    assert fetch(row).args == ARGS


@pytest.mark.parametrize(
    ("decision", "outcome"),
    [(Reject("no"), "refused"), (None, "expired"), (Respond({"a": 1}), "answered")],
)
def test_fetching_what_leaves_nothing_to_run_resolves_it(decision, outcome):
    row = ask_question() if outcome == "answered" else ask()
    if decision is None:
        pass_time(row, "expires_at")
        assert services.sweep().expired == 1
    else:
        decided(row, decision)

    answer = fetch(row)

    row = fresh(row)
    assert (row.status, row.outcome_status) == ("resolved", outcome)
    assert row.resolved_at is not None
    assert row.outcome_due is None
    assert (answer.args, answer.args_digest, answer.status) == (None, "", "resolved")
    assert answer.value == ({"a": 1} if outcome == "answered" else None)
    assert answer.reason == ("no" if outcome == "refused" else "")
    assert kinds(row)[-1] == "resolved"
    again = fetch(row)
    assert (again.decision, again.value, again.replayed) == (
        answer.decision,
        answer.value,
        True,
    )
    with pytest.raises(AlreadyConsumed):
        fetch(row, key="other")


@pytest.mark.breaks_invariants
def test_arguments_that_were_changed_after_the_decision_are_not_handed_out():
    row = approved()
    PendingInterrupt.objects.filter(pk=row.pk).update(args_text='{"amount":999}')

    with pytest.raises(SnapshotMismatch):
        fetch(row)

    assert fresh(row).consumed_at is None


def test_another_clients_requests_do_not_exist():
    row, other = approved(), a_client("other")

    for verb in (
        lambda: fetch(row, client=other),
        lambda: report(row, client=other),
        lambda: withdraw(row, client=other),
    ):
        with pytest.raises(InterruptNotFound):
            verb()
    for wrong in ("no id", "0" * 32):
        with pytest.raises(InterruptNotFound):
            services.consume(wrong, client=other, key="k")


def test_what_belongs_to_a_turn_is_not_for_clients(world):
    row = only(begin([call("mail", "m", to="a")]))

    with pytest.raises(InterruptNotFound):
        fetch(row, client=a_client())
    with pytest.raises(TransitionNotAllowed, match="belongs to a turn"):
        services.withdraw(row.pk, client=None)


def test_the_time_to_report_is_the_requests_own_or_the_sites(settings):
    settings.HITL_APPROVALS = {"OUTCOME_WITHIN": 60}

    for row, seconds in (
        (fetched(), 60),
        (fetched(outcome_within=timedelta(minutes=5)), 300),
    ):
        left = (row.outcome_due - row.consumed_at).total_seconds()
        assert left == pytest.approx(seconds, 0.1)


# report


def test_a_success_resolves_the_request_with_its_result():
    row = fetched()

    receipt = report(row, result={"id": 9})

    row = fresh(row)
    assert (row.status, row.outcome_status, row.outcome) == (
        "resolved",
        "succeeded",
        {"id": 9},
    )
    assert (receipt.status, receipt.late, receipt.replayed) == (
        "resolved",
        False,
        False,
    )
    assert kinds(row) == ["raised", "approved", "consumed", "resolved"]


def test_a_failure_resolves_it_too_and_keeps_the_error():
    row = fetched()

    report(row, "failed", error="card declined")

    row = fresh(row)
    assert (row.status, row.outcome_status) == ("resolved", "failed")
    assert row.outcome == {"error": "card declined"}
    assert events(row)[-1].detail["note"] == "card declined"


def test_not_knowing_is_a_doubt():
    row = fetched()

    receipt = report(row, "unknown", error="timed out")

    row = fresh(row)
    assert (row.status, row.outcome_status, receipt.status) == (
        "in_doubt",
        "",
        "in_doubt",
    )
    assert kinds(row)[-1] == "in_doubt"


@pytest.mark.parametrize("status", ["succeeded", "failed", "unknown"])
def test_the_same_report_is_stored_once(status):
    row = fetched()

    report(row, status, result=1, error="x")
    again = report(row, status, result=1, error="x")

    assert (again.replayed, again.late) == (True, False)
    assert len(kinds(row)) == 4


def test_a_report_after_the_end_is_only_noted_once():
    row = fetched()
    pass_time(row, "outcome_due")
    assert services.sweep().doubted == 1
    settled = fresh(row)
    assert settled.status == "in_doubt"

    first = report(row, result={"id": 9})
    again = report(row, result={"id": 9})

    assert (first.late, first.status, first.replayed) == (True, "in_doubt", False)
    assert (again.late, again.replayed) == (True, True)
    row = fresh(row)
    assert (row.status, row.outcome_status, row.outcome) == ("in_doubt", "", None)
    assert kinds(row) == ["raised", "approved", "consumed", "in_doubt", "late_result"]
    assert events(row)[-1].detail["result"] == {"id": 9}

    services.settle(row.pk, "happened", by=None, via="test", result={"id": 9})
    late = report(row, "failed")
    assert (late.late, late.status) == (True, "resolved")
    assert fresh(row).outcome_status == "succeeded"


def test_a_report_that_contradicts_the_first_is_noted():
    row = fetched()
    report(row, "succeeded")

    assert report(row, "failed").late

    assert fresh(row).outcome_status == "succeeded"


def test_only_who_fetched_it_can_report():
    row = approved()
    with pytest.raises(TransitionNotAllowed, match="Nobody fetched"):
        report(row)
    fetch(row, key="a")
    with pytest.raises(AlreadyConsumed):
        report(row, key="b")
    with pytest.raises(ValueError, match="succeeded, failed, unknown"):
        report(row, "perhaps", key="a")
    with pytest.raises(PayloadRejected):
        report(row, key="a", result=float("nan"))
    assert fresh(row).status == "decided"


def test_a_client_that_acted_on_a_refusal_leaves_a_trace():
    row = decided(ask(), Reject("no"))
    fetch(row)

    assert report(row, "succeeded", result="oh").late

    assert fresh(row).outcome_status == "refused"
    assert kinds(row)[-1] == "late_result"


# withdraw and the clock


def test_what_nobody_fetched_can_be_taken_back():
    for row in (ask(), approved(), decided(ask(), Reject("no"))):
        withdraw(row, reason="not needed")

        row = fresh(row)
        assert (row.status, row.outcome_status) == ("cancelled", "withdrawn")
        assert row.decided_at is not None
        assert events(row)[-1].detail == {
            "outcome": "withdrawn",
            "reason": "not needed",
        }
        count = row.events_count
        assert withdraw(row).events_count == count
        with pytest.raises(InterruptCancelled):
            services.decide(row.pk, Approve(), by=None, via="test")
        with pytest.raises(InterruptCancelled):
            fetch(row)


def test_what_was_fetched_cannot_be_taken_back():
    row = fetched()
    with pytest.raises(AlreadyConsumed, match="may have been made"):
        withdraw(row)
    report(row)
    with pytest.raises(TransitionNotAllowed, match="nothing to withdraw"):
        withdraw(row)


def test_an_approval_that_nobody_fetched_lapses_and_never_comes_back():
    row = approved()
    pass_time(row, "execute_by")

    assert services.sweep().lapsed == 1
    assert services.sweep().lapsed == 0

    row = fresh(row)
    assert (row.status, row.outcome_status, row.generation) == (
        "cancelled",
        "lapsed",
        1,
    )
    assert kinds(row) == ["raised", "approved", "cancelled"]
    with pytest.raises(InterruptCancelled, match="not fetched in time"):
        fetch(row)


def test_a_refusal_does_not_lapse():
    row = decided(ask(), Reject("no"))
    pass_time(row, "execute_by")

    assert services.sweep().lapsed == 0


def test_a_request_that_nobody_decides_expires():
    row = ask(expires_in=timedelta(hours=1))
    assert services.sweep().expired == 0
    pass_time(row, "expires_at")

    assert services.sweep().expired == 1

    row = fresh(row)
    assert (row.status, row.decision) == ("decided", "expire")
    assert decisions.expire(row.pk) is False


def test_a_call_that_nobody_reports_is_in_doubt_when_its_outcome_is_overdue():
    row = fetched()
    assert services.sweep().doubted == 0
    pass_time(row, "outcome_due")

    assert services.sweep().doubted == 1
    assert services.sweep().doubted == 0

    row = fresh(row)
    assert row.status == "in_doubt"
    assert fetch(row).status == "in_doubt"


# settle


def test_a_doubt_is_settled_by_what_happened():
    row = in_doubt()

    services.settle(row.pk, "happened", by=None, via="test", result=[1], note="seen")

    row = fresh(row)
    assert (row.status, row.outcome_status, row.outcome) == (
        "resolved",
        "succeeded",
        [1],
    )


def test_a_doubt_can_be_given_up(make_user):
    row, settler = in_doubt(), make_user("sina", *RIGHTS)

    services.settle(row.pk, "give_up", by=settler, via="test", note="no trace")

    row = fresh(row)
    assert (row.status, row.outcome_status) == ("cancelled", "given_up")


def test_it_can_never_run_again_and_nobody_without_the_right_settles(make_user):
    row = in_doubt()

    with pytest.raises(TransitionNotAllowed, match="nothing here can run it again"):
        services.settle(row.pk, "run_again", by=None, via="test")
    viewer = make_user("vera", "view_pendinginterrupt")
    with pytest.raises(ReviewerNotAllowed):
        services.settle(row.pk, "happened", by=viewer, via="test")

    assert fresh(row).status == "in_doubt"
    assert kinds(row) == ["raised", "approved", "consumed", "in_doubt"]


RIGHTS = ("view_pendinginterrupt", "settle_pendinginterrupt")


# give back


def test_an_unused_approval_is_given_back_and_fetched_by_another():
    row = fetched(key="a")

    give_back(row, key="a", reason="no model")

    row = fresh(row)
    assert (row.status, row.consumed_at, row.consume_key, row.outcome_due) == (
        "decided",
        None,
        None,
        None,
    )
    assert kinds(row) == ["raised", "approved", "consumed", "given_back"]
    assert events(row)[-1].detail == {"reason": "no model", "key": "a"}
    with pytest.raises(TransitionNotAllowed):
        report(row, key="a")
    with pytest.raises(AlreadyConsumed, match="under a new one"):
        fetch(row, key="a")
    assert not fetch(row, key="b").replayed
    report(row, key="b")
    assert kinds(row)[-2:] == ["consumed", "resolved"]


@pytest.mark.parametrize("key", ["a", "k" * 200])
def test_the_same_return_twice_is_written_once_whoever_has_it_by_then(key):
    row = fetched(key=key)

    assert give_back(row, key=key) is False
    assert give_back(row, key=key) is True
    fetch(row, key="b")
    assert give_back(row, key=key) is True

    assert fresh(row).consume_key == "b"
    assert kinds(row)[2:] == ["consumed", "given_back", "consumed"]


def test_what_was_given_back_too_late_lapses_like_any_other():
    row = fetched()
    pass_time(row, "execute_by")

    give_back(row)

    with pytest.raises(InterruptExpired):
        fetch(row, key="b")
    assert services.sweep().lapsed == 1


def test_what_may_have_run_is_not_given_back():
    row = in_doubt()
    refused = decided(ask(), Reject("no"))
    fetch(refused)

    for one in (row, refused):
        with pytest.raises(TransitionNotAllowed, match="nothing to give back"):
            give_back(one)
    with pytest.raises(TransitionNotAllowed, match="Nobody fetched"):
        give_back(approved())
    with pytest.raises(InterruptNotFound):
        give_back(fetched(), client=a_client("other"))

    assert fresh(row).status == "in_doubt"

"""Who may decide, and which decisions a row takes."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from hitl_approvals import Approve, Edit, Reject, selectors, services
from hitl_approvals.exceptions import (
    DecisionNotAllowed,
    InterruptNotFound,
    PayloadRejected,
    ReviewerNotAllowed,
)
from hitl_approvals.models import PendingInterrupt, ReviewQueue
from tests.support.agents import call
from tests.support.turns import begin, decide, events, only

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
PAY = call("pay", "p", order="A", amount="1.00")
SHIP = call("ship", "s", speed="slow")


def by(user, row, decision=None):
    return services.decide(row.pk, decision or Approve(), by=user, via="test")


def fresh(row):
    return PendingInterrupt.objects.get(pk=row.pk)


def test_who_may_see_but_not_decide_is_told_which_right_is_missing(world, make_user):
    row = only(begin([MAIL]))

    with pytest.raises(ReviewerNotAllowed, match="Can decide interrupts"):
        by(make_user("vera", "view_pendinginterrupt"), row)

    assert fresh(row).status == "pending"
    assert events(row) == ["raised"]


def test_who_may_not_see_it_does_not_learn_that_it_is_there(world, make_user):
    row = only(begin([MAIL]))

    with pytest.raises(InterruptNotFound):
        by(make_user("nobody"), row)


def test_a_disabled_account_decides_nothing(world, reviewer):
    row = only(begin([MAIL]))
    reviewer.is_active = False
    reviewer.save()

    with pytest.raises(InterruptNotFound):
        by(reviewer, row)
    assert fresh(row).status == "pending"


def test_a_superuser_may_decide(world, django_user_model):
    root = django_user_model.objects.create_superuser("root")

    assert by(root, only(begin([MAIL]))).decision == "approve"


@pytest.mark.parametrize("through", ["users", "groups"])
def test_only_members_decide_in_a_queue_that_has_some(world, make_user, through):
    member = make_user("maria", "decide_pendinginterrupt")
    stranger = make_user("sam", "decide_pendinginterrupt")
    queue = ReviewQueue.objects.create(slug="shipping")
    if through == "users":
        queue.users.add(member)
    else:
        group = Group.objects.create(name="dispatch")
        member.groups.add(group)
        queue.groups.add(group)
    row = only(begin([SHIP]))
    assert row.queue_id == "shipping"
    assert "queue_unknown" not in row.policy

    with pytest.raises(InterruptNotFound):
        by(stranger, row)
    assert list(selectors.open_interrupts(stranger)) == []
    assert [one.pk for one in selectors.open_interrupts(member)] == [row.pk]

    assert by(member, row).decision == "approve"


def test_an_administrator_sees_every_queue_and_still_may_not_decide(world, make_user):
    queue = ReviewQueue.objects.create(slug="shipping")
    queue.users.add(make_user("maria", "decide_pendinginterrupt"))
    boss = make_user("boss", "administer_pendinginterrupt", "decide_pendinginterrupt")
    row = only(begin([SHIP]))

    with pytest.raises(ReviewerNotAllowed, match="members of the queue “shipping”"):
        by(boss, row)


def test_a_queue_without_members_is_open_to_every_decider(world, reviewer):
    ReviewQueue.objects.create(slug="shipping")

    assert by(reviewer, only(begin([SHIP]))).decision == "approve"


def test_whoever_started_the_turn_may_not_decide_its_calls(world, reviewer):
    row = only(begin([MAIL], requested_by=reviewer))

    with pytest.raises(ReviewerNotAllowed, match="You started this turn"):
        by(reviewer, row)
    with pytest.raises(ReviewerNotAllowed):
        by(reviewer, row, Reject("not even refuse"))
    assert events(row) == ["raised"]


def test_a_queue_may_let_the_requester_decide(world, reviewer):
    ReviewQueue.objects.filter(pk="default").update(requester_may_decide=True)
    row = only(begin([MAIL], requested_by=reviewer))

    assert by(reviewer, row).decision == "approve"


def test_what_is_not_offered_is_refused_and_says_what_is(world):
    row = only(begin([SHIP]))

    with pytest.raises(DecisionNotAllowed) as refusal:
        decide(row, Edit({"speed": "fast"}))

    assert refusal.value.context == {
        "decision": "edit",
        "allowed": ["approve", "reject"],
    }
    assert fresh(row).status == "pending"


def test_an_edit_that_changes_nothing_needs_approve_not_edit(world):
    row = only(begin([SHIP]))

    assert decide(row, Edit({"speed": "slow"})).decision == "approve"


@pytest.mark.parametrize(
    ("args", "loc"),
    [
        ({"order": "A", "amount": "lots"}, "amount"),
        ({"order": "A"}, "amount"),
        ({"order": "A", "amount": 1, "tip": 2}, "tip"),
        ({"order": "A", "amount": 1, "note": 7}, "note"),
        ({"order": "B", "amount": "1.00"}, "order"),
        ({"amount": "1.00"}, "order"),
    ],
)
def test_an_edit_is_checked_field_by_field_and_nothing_is_stored(world, args, loc):
    row = only(begin([PAY]))

    with pytest.raises(PayloadRejected) as refusal:
        decide(row, Edit(args))

    locs = {one["loc"] or one["message"] for one in refusal.value.errors}
    assert any(loc in one for one in locs), refusal.value.errors
    assert refusal.value.reason == "does_not_fit"
    assert events(row) == ["raised"]
    assert (fresh(row).status, fresh(row).decision_args_text) == ("pending", None)


def test_a_fixed_argument_is_named(world):
    row = only(begin([PAY]))

    with pytest.raises(PayloadRejected) as refusal:
        decide(row, Edit({"order": "B", "amount": "1.00"}))

    assert {
        "loc": "order",
        "message": "This argument is fixed and cannot be edited.",
    } in (refusal.value.errors)


@pytest.mark.parametrize(
    "value", [float("nan"), {"deep": 1}, object(), "x" * 300_000], ids=str
)
def test_an_edit_that_no_row_can_hold_is_refused(world, value):
    row = only(begin([MAIL]))

    with pytest.raises(PayloadRejected):
        decide(row, Edit({"to": value}))

    assert fresh(row).status == "pending"

"""Who has a row in hand: claims, releases and assignments, and whom they keep out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group

from hitl_approvals import Approve, Reject, permissions, selectors, services
from hitl_approvals.exceptions import (
    ClaimedByAnother,
    InterruptCancelled,
    InterruptExpired,
    InterruptNotFound,
    PayloadRejected,
    ReviewerNotAllowed,
    TransitionNotAllowed,
)
from hitl_approvals.models import PendingInterrupt, ReviewQueue
from hitl_approvals.services import claims, decisions, settlements
from tests.support.agents import call
from tests.support.turns import (
    PAST,
    begin,
    decide,
    decide_and_resume,
    events,
    full_events,
    only,
    pass_execute_by,
    pass_expires_at,
    waiting,
)
from tests.support.world import acts_then_raises

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
DECIDE = "decide_pendinginterrupt"


@pytest.fixture
def row(world):
    return only(begin([MAIL]))


@pytest.fixture
def tom(make_user):
    return make_user("tom", DECIDE)


@pytest.fixture
def boss(make_user):
    return make_user("boss", DECIDE, "assign_pendinginterrupt")


@pytest.fixture
def doubt(world):
    world.plan("mail", acts_then_raises(TimeoutError("read")))
    turn = begin([MAIL])
    decide_and_resume(turn)
    (found,) = waiting(turn)
    assert found.status == "in_doubt"
    return found


def claim(row, by, **options):
    return services.claim(row.pk, by=by, via="test", **options)


def release(row, by, **options):
    return services.release(row.pk, by=by, via="test", **options)


def assign(row, to, by=None):
    return services.assign(row.pk, to, by=by, via="test")


def approve(row, by):
    return services.decide(row.pk, Approve(), by=by, via="test")


def lapse(row):
    PendingInterrupt.objects.filter(pk=row.pk).update(claim_until=PAST)


def fresh(row):
    return PendingInterrupt.objects.get(pk=row.pk)


def test_a_claim_holds_for_the_time_of_the_setting_and_moves_nothing(
    row, reviewer, settings
):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "CLAIM_FOR": 120}

    claimed = claim(row, reviewer)

    assert claimed.assignee == reviewer
    event = full_events(row)[-1]
    assert claimed.claim_until - event.at == timedelta(seconds=120)
    assert (claimed.status, claimed.revision, claimed.generation) == ("pending", 1, 1)
    assert claimed.turn.status == "suspended"
    assert events(row) == ["raised", "claimed"]
    assert (event.actor, event.via, event.status) == ("rita", "test", "pending")
    assert event.detail["to"] == "rita"
    assert event.detail["until"].endswith("Z")
    assert "from" not in event.detail


def test_whoever_claims_may_say_for_how_long(row, reviewer):
    claimed = claim(row, reviewer, minutes=90)

    at = full_events(row)[-1].at
    assert claimed.claim_until - at == timedelta(minutes=90)


@pytest.mark.parametrize("minutes", [0, -1, 1441, float("nan"), float("inf"), True])
def test_a_time_that_is_none_is_refused(row, reviewer, minutes):
    with pytest.raises(PayloadRejected, match="1440 minutes"):
        claim(row, reviewer, minutes=minutes)

    assert events(row) == ["raised"]


def test_a_claim_again_holds_for_longer(row, reviewer):
    first = claim(row, reviewer, minutes=1)
    second = claim(row, reviewer)

    assert second.claim_until > first.claim_until
    assert events(row) == ["raised", "claimed", "claimed"]
    assert full_events(row)[-1].detail["from"] == "rita"


def test_what_another_holds_cannot_be_claimed_decided_or_released(row, reviewer, tom):
    held = claim(row, reviewer)

    for verb in (claim, approve, release):
        with pytest.raises(ClaimedByAnother, match=r"^rita holds this until ") as told:
            verb(row, tom)
        assert told.value.claimed_by == "rita"
        assert told.value.claimed_until == held.claim_until
        assert told.value.code == "claimed_by_another"
    assert events(row) == ["raised", "claimed"]
    assert fresh(row).status == "pending"
    row.turn.refresh_from_db()
    assert (row.turn.status, row.turn.undecided) == ("suspended", 1)


def test_the_holder_decides(row, reviewer):
    claim(row, reviewer)

    assert approve(row, reviewer).decision == "approve"
    assert events(row) == ["raised", "claimed", "approved"]


def test_a_claim_lapses_by_itself(row, reviewer, tom):
    claim(row, reviewer)
    lapse(row)

    claimed = claim(row, tom)

    assert claimed.assignee == tom
    assert "from" not in full_events(row)[-1].detail
    lapse(row)
    assert approve(row, reviewer).decision == "approve"


def test_trusted_code_and_the_clock_pass(world, reviewer):
    one, two = (only(begin([MAIL])) for _ in range(2))
    claim(one, reviewer)
    claim(two, reviewer)
    pass_expires_at(two)

    assert decide(one).decision == "approve"
    assert decisions.expire(two.pk)
    assert events(two) == ["raised", "claimed", "expired"]


def test_who_may_assign_takes_over_and_decides(world, reviewer, boss):
    one, two = (only(begin([MAIL])) for _ in range(2))
    claim(one, reviewer)
    claim(two, reviewer)

    assert claim(one, boss).assignee == boss
    assert full_events(one)[-1].detail["from"] == "rita"
    assert approve(two, boss).decision == "approve"


def test_a_released_row_is_free(row, reviewer, tom):
    claim(row, reviewer)

    free = release(row, reviewer, note="not my market")

    assert (free.assignee, free.claim_until) == (None, None)
    event = full_events(row)[-1]
    assert (event.type, event.detail) == (
        "released",
        {"from": "rita", "note": "not my market"},
    )
    assert claim(row, tom).assignee == tom


def test_what_nobody_holds_cannot_be_released(row, reviewer):
    with pytest.raises(TransitionNotAllowed, match="Nobody holds this"):
        release(row, reviewer)
    claim(row, reviewer)
    lapse(row)

    with pytest.raises(TransitionNotAllowed, match="Nobody holds this"):
        release(row, reviewer)


def test_who_may_assign_releases_for_others(row, reviewer, boss):
    claim(row, reviewer)

    assert release(row, boss).assignee is None
    assert full_events(row)[-1].detail == {"from": "rita"}


def test_to_release_needs_to_see_it(row, reviewer, make_user):
    claim(row, reviewer)

    with pytest.raises(InterruptNotFound):
        release(row, make_user("nobody"))


def test_assigning_needs_a_right_of_its_own(row, reviewer, tom, boss, make_user):
    with pytest.raises(ReviewerNotAllowed, match="Can assign interrupts"):
        assign(row, tom, by=reviewer)
    with pytest.raises(InterruptNotFound):
        assign(row, tom, by=make_user("nobody", "assign_pendinginterrupt"))
    assert events(row) == ["raised"]

    given = assign(row, tom, by=boss)

    assert given.assignee == tom
    event = full_events(row)[-1]
    assert (event.type, event.actor, event.detail["to"]) == ("assigned", "boss", "tom")
    with pytest.raises(ClaimedByAnother):
        approve(row, reviewer)


def test_a_row_is_given_from_one_to_the_other(row, reviewer, tom, boss):
    claim(row, reviewer)

    assign(row, tom, by=boss)

    assert full_events(row)[-1].detail["from"] == "rita"
    assert fresh(row).assignee == tom


def test_a_row_is_given_only_to_those_who_could_close_it(row, boss, make_user):
    with pytest.raises(PayloadRejected, match="could not close") as told:
        assign(row, make_user("vera", "view_pendinginterrupt"), by=boss)

    assert told.value.errors[0]["loc"] == "to"
    assert events(row) == ["raised"]


def test_a_requester_does_not_hold_their_own_call(world, reviewer, boss):
    row = only(begin([MAIL], requested_by=reviewer))

    with pytest.raises(ReviewerNotAllowed, match="You started this turn"):
        claim(row, reviewer)
    with pytest.raises(PayloadRejected):
        assign(row, reviewer, by=boss)
    assert [one.get_username() for one in permissions.people_of(row)] == ["boss"]


def test_who_may_not_decide_may_not_claim(row, make_user):
    with pytest.raises(ReviewerNotAllowed, match="Can decide interrupts"):
        claim(row, make_user("vera", "view_pendinginterrupt"))
    with pytest.raises(InterruptNotFound):
        claim(row, make_user("nobody"))


def test_a_doubt_is_held_by_those_who_settle(doubt, reviewer, make_user):
    view, settle = "view_pendinginterrupt", "settle_pendinginterrupt"
    farah, omar = (make_user(name, view, settle) for name in ("farah", "omar"))

    with pytest.raises(ReviewerNotAllowed, match="Can settle calls in doubt"):
        claim(doubt, reviewer)
    claim(doubt, farah)

    with pytest.raises(ClaimedByAnother, match="farah holds this"):
        services.settle(doubt.pk, "give_up", by=omar, via="test", note="tried")
    assert fresh(doubt).status == "in_doubt"
    names = [one.get_username() for one in permissions.people_of(doubt)]
    assert names == ["farah", "omar"]
    services.settle(doubt.pk, "give_up", by=farah, via="test", note="tried")
    assert events(doubt)[-2:] == ["claimed", "settled_gave_up"]


def test_only_open_rows_are_in_hands(world, reviewer, tom, boss):
    decided, cancelled, over = (only(begin([MAIL])) for _ in range(3))
    claim(decided, reviewer)
    approve(decided, reviewer)
    services.cancel(cancelled.turn_id, by=None, via="test")
    pass_expires_at(over)

    for verb in (lambda row: claim(row, tom), lambda row: assign(row, tom, by=boss)):
        with pytest.raises(TransitionNotAllowed, match="nothing left to hold"):
            verb(decided)
        with pytest.raises(InterruptCancelled):
            verb(cancelled)
        with pytest.raises(InterruptExpired):
            verb(over)
    with pytest.raises(TransitionNotAllowed, match="nothing left to hold"):
        release(decided, reviewer)
    assert not selectors.is_held(fresh(decided), fresh(decided).claim_until.min)


def test_an_approval_that_lapsed_may_still_be_in_its_claims_time(row, reviewer, tom):
    claim(row, reviewer)
    approve(row, reviewer)
    pass_execute_by(row)
    services.sweep()
    assert fresh(row).status == "pending"

    with pytest.raises(ClaimedByAnother):
        approve(row, tom)
    assert approve(row, reviewer).decision == "approve"


def test_people_are_those_of_the_queue(row, make_user, reviewer, tom):
    group = Group.objects.create(name="desk")
    make_user("ulla").groups.add(group)
    tom.groups.add(group)
    queue = ReviewQueue.objects.get(pk="default")
    queue.groups.add(group)
    queue.users.add(reviewer)

    row = PendingInterrupt.objects.get(pk=row.pk)

    names = [one.get_username() for one in permissions.people_of(row)]
    assert names == ["rita", "tom"]


def test_a_claim_between_reading_and_writing_wins(row, reviewer, tom, monkeypatch):
    apply = decisions._apply
    slipped_in = []

    def late(*args, **options):
        if not slipped_in:
            slipped_in.append(claim(row, reviewer))
        return apply(*args, **options)

    monkeypatch.setattr(decisions, "_apply", late)

    with pytest.raises(ClaimedByAnother, match="rita holds this"):
        approve(row, tom)

    assert slipped_in
    assert events(row) == ["raised", "claimed"]
    row.turn.refresh_from_db()
    assert row.turn.undecided == 1


def test_ones_own_claim_in_between_keeps_nobody_from_deciding(
    row, reviewer, monkeypatch
):
    apply = decisions._apply
    slipped_in = []

    def late(*args, **options):
        if not slipped_in:
            slipped_in.append(claim(row, reviewer))
        return apply(*args, **options)

    monkeypatch.setattr(decisions, "_apply", late)

    receipt = services.decide(
        row.pk, Reject("no"), by=reviewer, via="test", revision=1, key="k"
    )

    assert (receipt.revision, receipt.replayed) == (2, False)
    assert events(row) == ["raised", "claimed", "rejected"]


@pytest.mark.parametrize("holder", ["farah", "omar"])
def test_a_claim_between_reading_and_settling(doubt, make_user, monkeypatch, holder):
    view, right = "view_pendinginterrupt", "settle_pendinginterrupt"
    people = {name: make_user(name, view, right) for name in ("farah", "omar")}
    settle = settlements._settle
    slipped_in = []

    def late(*args, **options):
        if not slipped_in:
            slipped_in.append(claim(doubt, people[holder]))
        return settle(*args, **options)

    monkeypatch.setattr(settlements, "_settle", late)

    def send():
        return services.settle(
            doubt.pk, "give_up", by=people["omar"], via="test", note="tried"
        )

    if holder == "omar":
        assert send().status == "cancelled"
    else:
        with pytest.raises(ClaimedByAnother, match="farah holds"):
            send()
        assert events(doubt)[-1] == "claimed"


def test_a_claim_that_finds_the_row_moved_looks_again(row, reviewer, tom, monkeypatch):
    hand = claims.append_aside
    slipped_in = []

    def late(*args, **options):
        if not slipped_in:
            slipped_in.append(approve(row, tom))
        return hand(*args, **options)

    monkeypatch.setattr(claims, "append_aside", late)

    with pytest.raises(TransitionNotAllowed, match="nothing left to hold"):
        claim(row, reviewer)
    assert events(row) == ["raised", "approved"]


def test_a_holder_who_is_gone_holds_nothing(row, reviewer, tom):
    claim(row, reviewer)
    reviewer.delete()

    assert approve(row, tom).decision == "approve"


def test_the_next_row_is_one_that_nobody_else_holds(world, reviewer, tom):
    first, second, third = (only(begin([MAIL])) for _ in range(3))
    claim(second, tom)

    assert selectors.next_open(reviewer, first).pk == third.pk
    assert selectors.next_open(tom, first).pk == second.pk
    pass_expires_at(third)
    assert selectors.next_open(reviewer, first) is None


def test_a_pass_over_the_queue_ends_where_it_began(world, reviewer):
    rows = [only(begin([MAIL])) for _ in range(4)]
    begun = at = rows[2]
    seen = []

    while (at := selectors.next_open(reviewer, at, begun=begun)) is not None:
        seen.append(at)

    assert [one.pk for one in seen] == [rows[3].pk, rows[0].pk, rows[1].pk]

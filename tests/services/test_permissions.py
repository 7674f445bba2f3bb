"""Lists and single answers about rights never contradict each other."""

from __future__ import annotations

import itertools

import pytest
from django.contrib.auth.models import Group

from hitl_approvals import permissions, selectors
from hitl_approvals.exceptions import InterruptNotFound, TurnNotFound
from hitl_approvals.models import AgentTurn, PendingInterrupt, ReviewQueue
from tests.support.agents import call
from tests.support.turns import begin, decide, decide_and_resume, only, rows

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
SHIP = call("ship", "s", speed="fast")
RIGHTS = ("view_pendinginterrupt", "decide_pendinginterrupt")


@pytest.fixture
def crowd(make_user, django_user_model):
    """People with every mix of rights, in and out of the queue."""
    group = Group.objects.create(name="dispatch")
    people = [django_user_model.objects.create_superuser("root")]
    for number, chosen in enumerate(
        itertools.chain.from_iterable(
            itertools.combinations((*RIGHTS, "administer_pendinginterrupt"), size)
            for size in range(4)
        )
    ):
        for member in (False, True):
            user = make_user(f"user{number}{member}", *chosen)
            if member:
                user.groups.add(group)
            people.append(user)
    disabled = make_user("disabled", *RIGHTS)
    disabled.is_active = False
    disabled.save()
    queue = ReviewQueue.objects.create(slug="shipping")
    queue.groups.add(group)
    return [*people, disabled]


@pytest.fixture
def calls(world, crowd):
    """Calls in an open and in a closed queue, some asked for by members of the crowd."""
    turns = [begin([one]) for one in (MAIL, SHIP)]
    turns += [
        begin([one], requested_by=user) for user in crowd[::4] for one in (MAIL, SHIP)
    ]
    return [row for turn in turns for row in rows(turn)]


def test_the_list_of_what_may_be_decided_is_what_each_answer_says(crowd, calls):
    for user in crowd:
        listed = set(permissions.decidable_by(user).values_list("pk", flat=True))
        answered = {row.pk for row in calls if permissions.may_decide(user, row)}

        assert listed == answered, user


def test_the_list_of_what_may_be_seen_is_what_each_answer_says(crowd, calls):
    for user in crowd:
        listed = set(permissions.visible_to(user).values_list("pk", flat=True))
        answered = {row.pk for row in calls if permissions.may_view(user, row)}

        assert listed == answered, user


def test_whoever_may_decide_may_see(crowd, calls):
    for user in crowd:
        seen = set(permissions.visible_to(user).values_list("pk", flat=True))

        assert {row.pk for row in permissions.decidable_by(user)} <= seen


def test_somebody_can_decide_and_somebody_cannot(crowd, calls):
    """The three tests above would pass for a function that always says no."""
    counts = {user.username: permissions.decidable_by(user).count() for user in crowd}

    assert counts["disabled"] == counts["user0False"] == 0
    assert counts["root"] > 0
    assert len(set(counts.values())) > 2


def test_open_interrupts_are_those_that_wait_for_a_person(world, reviewer):
    pending = only(begin([MAIL]))
    decided = only(begin([MAIL]))
    decide(decided)
    decide_and_resume(begin([MAIL]))

    assert [row.pk for row in selectors.open_interrupts(reviewer)] == [pending.pk]


def test_one_interrupt_is_read_only_by_those_who_may_see_it(world, reviewer, make_user):
    row = only(begin([MAIL]))

    assert selectors.interrupt_get(str(row.pk), reviewer).turn_id == row.turn_id
    for user, pk in (
        (make_user("nobody"), row.pk),
        (reviewer, row.turn_id),
        (reviewer, "no uuid"),
    ):
        with pytest.raises(InterruptNotFound):
            selectors.interrupt_get(pk, user)


def test_a_turn_is_read_by_its_requester_and_by_those_with_the_right(world, make_user):
    requester = make_user("rolf")
    turn = begin([MAIL], requested_by=requester)
    viewer = make_user("vera", "view_agentturn")

    assert selectors.turn_get(turn.pk, requester).pk == turn.pk
    assert selectors.turn_get(turn.pk, viewer).pk == turn.pk
    for user, pk in (
        (make_user("nobody"), turn.pk),
        (viewer, AgentTurn().pk),
        (viewer, "no uuid"),
    ):
        with pytest.raises(TurnNotFound):
            selectors.turn_get(pk, user)


def test_siblings_steps_and_events_of_a_turn_come_in_order(world):
    turn = begin([MAIL, SHIP, call("note", "n", text="x")])
    first, second = rows(turn)
    decide(second)
    decide_and_resume(turn)

    assert [row.pk for row in selectors.siblings_of(first)] == [second.pk]
    assert list(selectors.siblings_of(PendingInterrupt())) == []
    assert [step.name for step in selectors.steps_of(turn.pk)] == [
        "model",
        "note",
        "mail",
        "ship",
        "model",
    ]
    assert [event.type for event in selectors.events_of(first)] == [
        "raised",
        "approved",
        "resolved",
    ]
    told = [event.type for event in selectors.events_of_turn(turn.pk)]
    assert sorted(told) == sorted(
        ["raised", "approved", "resolved"] * 2 + ["turn_completed"]
    )

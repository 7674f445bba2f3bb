"""Every write of the API meets itself and its rivals, and it is as if one came first.

Each meeting is played in both orders, one after the other, and then at the same time.
Whatever the two are told and leave behind then, one of the orders tells and leaves too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

import pytest
from django.contrib.auth.models import User

from hitl_approvals import services
from hitl_approvals.models import InterruptEvent
from hitl_approvals.services.clients import create_client
from tests.concurrency import situations, summary
from tests.concurrency.doors import DECIDING, TIMED, VERBS, Answer, send
from tests.concurrency.meeting import errors, together
from tests.concurrency.situations import Situation
from tests.invariants import AUTHORIZATIONS, assert_invariants

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]
ROUNDS = int(os.environ.get("HITL_RACE_ROUNDS", "1"))
"""How often they meet; `make races` lets them all meet, and more often."""
UNLIMITED = {"per_minute": None}

MEETINGS: dict[str, tuple[str, ...]] = {
    "nothing": ("start", "start other"),
    "waiting": (
        *("approve", "reject", "edit", "bulk", "claim", "release", "assign"),
        *("cancel", "fork", "expire"),
    ),
    "asked": ("respond", "reject", "bulk", "cancel", "expire"),
    "in hand": ("approve", "bulk", "claim", "release", "assign", "cancel", "expire"),
    "approved": ("approve", "cancel", "fork", "lapse", "run"),
    "in doubt": ("happened", "run again", "give up", "claim", "cancel", "fork"),
    "diverged": ("re-review", "retry", "restart", "cancel", "fork"),
    "failed": ("retry", "restart", "cancel", "fork"),
    "unasked": ("raise", "raise other"),
    "requested": (
        *("approve", "reject", "bulk", "claim", "take back", "withdraw", "consume"),
        *("expire", "raise"),
    ),
    "remote approved": (
        *("consume", "consume too", "withdraw", "take back", "approve", "lapse"),
    ),
    "refused": ("consume", "consume too", "withdraw", "reject"),
    "fetched": (
        *("succeeded", "failed", "unknown", "give back", "withdraw", "consume"),
        *("consume too", "doubt"),
    ),
    "remote in doubt": (
        *("succeeded", "failed", "happened", "give up", "withdraw", "give back"),
    ),
}
"""Who can meet in which situation; everybody meets everybody, and himself."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two writes in one situation; `same` if one person sends both under one key."""

    situation: str
    one: str
    other: str
    same: bool

    def __str__(self) -> str:
        how = "same key" if self.same else "other key"
        return f"{self.situation}: {self.one} and {self.other}, {how}"


def meetings(situation: str) -> Iterator[Meeting]:
    """Yield who meets whom, under keys of their own and under one."""
    for one, other in combinations_with_replacement(MEETINGS[situation], 2):
        yield Meeting(situation, one, other, same=False)
        alike = one == other or {one, other} <= DECIDING | {"start", "start other"}
        if alike and VERBS[one].free and VERBS[other].free:
            yield Meeting(situation, one, other, same=True)


def telling(situation: str) -> list[Meeting]:
    """Return a few: the first with itself in every way, and with its first rival."""
    first, rival = MEETINGS[situation][:2]
    found = [one for one in meetings(situation) if one.one == first]
    return [one for one in found if one.other in (first, rival)]


class Stage:
    """The people of one test, and what they do in each situation."""

    def __init__(self) -> None:
        self.people = [
            User.objects.create_superuser(name) for name in ("first", "second", "third")
        ]
        self.client, self.token = create_client("billing", limits=UNLIMITED, by=None)

    def place(self, meeting: Meeting) -> Situation:
        return Situation(meeting.situation, self.people, self.client, self.token)

    def verbs(self, meeting: Meeting, place: Situation) -> list[Any]:
        return [
            partial(
                send,
                VERBS[name],
                place,
                person=0 if meeting.same else side,
                key="same" + place.ref if meeting.same else f"{side} {place.ref}",
            )
            for side, name in enumerate((meeting.one, meeting.other))
        ]

    def in_turn(self, meeting: Meeting, *, swapped: bool) -> tuple[Any, Any]:
        place = self.place(meeting)
        verbs = self.verbs(meeting, place)
        answers: list[Any] = [None, None]
        for side in (1, 0) if swapped else (0, 1):
            answers[side] = verbs[side]()
        return tuple(answers), self._left(meeting, place)

    def at_once(self, meeting: Meeting) -> tuple[Any, Any]:
        place = self.place(meeting)
        answers = together(*self.verbs(meeting, place))
        assert errors(answers) == [], meeting
        assert len(situations.EFFECTS) <= _authorized(place), meeting
        return tuple(answers), self._left(meeting, place)

    def _left(self, meeting: Meeting, place: Situation) -> tuple[Any, Any]:
        if {meeting.one, meeting.other} & TIMED:
            # A sweeper passes by a row that is held, and comes again.
            services.sweep()
        return place.left(), place.shown()


def _authorized(place: Situation) -> int:
    if place.row is None:
        return 0
    told = InterruptEvent.objects.filter(subject_id=place.row.pk)
    return told.filter(type__in=AUTHORIZATIONS).count()


def complaint(meeting: Meeting, orders: list[Any], found: tuple[Any, Any]) -> str:
    """Compare what came of a meeting with its two orders; empty if one is the same."""
    answers, (left, now) = found
    if any(answer.status >= 500 for answer in answers):
        return f"{meeting}: the server failed: {answers}"
    if "run" in (meeting.one, meeting.other):
        return ""  # A run is many transactions; its effects and the invariants count.
    timed = bool({meeting.one, meeting.other} & TIMED)
    told = [(_cores(theirs, timed), then) for theirs, (then, _now) in orders]
    if (_cores(answers, timed), left) not in told:
        seen = [f"\n    {way}" for way in told]
        return f"{meeting}:\n    {_cores(answers, timed), left}\n  is none of{''.join(seen)}"
    for side, answer in enumerate(() if timed else answers):
        # A refusal shows the row as it is by then, which may be later than its reason.
        shown = [now, *(theirs[side].shown for theirs, _left in orders)]
        if answer.shown is not None and answer.shown not in shown:
            return f"{meeting}: {answer.shown} was shown, not one of {shown}"
    return ""


def _cores(answers: tuple[Answer, ...], timed: bool) -> list[Any]:
    """Where a moment passes and a sweeper comes later, either may be the reason."""
    return [one.status if timed else one.core for one in answers]


@pytest.mark.breaks_invariants  # checked here, before the rest moves times
@pytest.mark.parametrize("situation", list(MEETINGS))
def test_what_meets_is_as_if_one_came_first(situation: str) -> None:
    stage, told = Stage(), []
    for meeting in telling(situation) if ROUNDS == 1 else meetings(situation):
        orders = [stage.in_turn(meeting, swapped=swapped) for swapped in (False, True)]
        for _round in range(ROUNDS):
            found = stage.at_once(meeting)
            summary.note(situation, (meeting.one, meeting.other), found[0])
            told.append(complaint(meeting, orders, found))
    assert not any(told), "\n".join(filter(None, told))
    assert_invariants()

"""Hidden arguments are shown to those with the right, once it is written down."""

from __future__ import annotations

import pytest
from django.db import transaction

from hitl_approvals import Reject, services
from hitl_approvals.exceptions import (
    InterruptNotFound,
    ReviewerNotAllowed,
    SnapshotMismatch,
    TransitionNotAllowed,
)
from hitl_approvals.models import PendingInterrupt
from tests.support.agents import call
from tests.support.remote import a_client, ask, decided, events, fetch, kinds
from tests.support.turns import begin, only

pytestmark = pytest.mark.django_db
HIDDEN = ("amount",)


@pytest.fixture
def rosa(make_user):
    return make_user("rosa", "view_pendinginterrupt", "reveal_pendinginterrupt")


@pytest.fixture
def row(world):
    return ask(a_client(), redact=HIDDEN)


def reveal(row, by):
    return services.reveal(row.pk, by=by, via="test")


def test_the_values_come_after_an_event_that_does_not_hold_them(row, rosa):
    shown = reveal(row, rosa)

    assert shown == {"amount": row.args["amount"]}
    event = events(row)[-1]
    assert (event.type, event.actor, event.via) == ("revealed", "rosa", "test")
    assert event.detail == {"arguments": ["amount"]}
    assert (event.status, event.revision) == ("pending", 1)


def test_each_look_is_written_down(row, rosa):
    reveal(row, rosa)
    reveal(row, rosa)

    assert kinds(row) == ["raised", "revealed", "revealed"]


def test_it_needs_the_right_and_to_see_the_row(row, reviewer, make_user):
    with pytest.raises(ReviewerNotAllowed, match="Can reveal hidden arguments"):
        reveal(row, reviewer)
    with pytest.raises(InterruptNotFound):
        reveal(row, make_user("nobody", "reveal_pendinginterrupt"))

    assert kinds(row) == ["raised"]


def test_where_nothing_is_hidden_there_is_nothing_to_reveal(world, rosa):
    row = only(begin([call("mail", "m", to="a")]))

    with pytest.raises(TransitionNotAllowed, match="Nothing is hidden"):
        reveal(row, rosa)


def test_a_call_that_may_be_under_way_keeps_its_chain_to_itself(row, rosa):
    decided(row)

    with pytest.raises(TransitionNotAllowed, match="may be under way"):
        reveal(row, rosa)


def test_what_is_over_can_be_looked_at(row, rosa, reviewer):
    decided(row, Reject("no"))
    fetch(row)

    assert reveal(row, rosa) == {"amount": row.args["amount"]}
    assert kinds(row)[-2:] == ["resolved", "revealed"]


def test_a_rollback_cannot_take_the_record_back(transactional_db, row, rosa):
    with pytest.raises(RuntimeError), transaction.atomic():
        reveal(row, rosa)

    assert kinds(row) == ["raised"]


def test_a_decision_may_follow(row, rosa, reviewer):
    reveal(row, rosa)

    assert decided(row).status == "decided"


@pytest.mark.breaks_invariants
def test_changed_arguments_are_not_shown_as_if_they_were_asked_for(row, rosa):
    PendingInterrupt.objects.filter(pk=row.pk).update(args_text='{"amount":"9"}')

    with pytest.raises(SnapshotMismatch):
        reveal(row, rosa)

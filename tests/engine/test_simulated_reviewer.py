"""The simulated reviewer decides by rules, and through the one door."""

from __future__ import annotations

import pytest

from hitl_approvals import Approve, Edit, Reject
from hitl_approvals.exceptions import InterruptNotFound
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.testing import SimulatedReviewer
from tests.support.agents import call
from tests.support.turns import begin, full_events, rows

pytestmark = pytest.mark.django_db(transaction=True)
MAIL = call("mail", "m", to="a")
PAY = call("pay", "p", order="A", amount=10)


def test_it_decides_by_the_name_of_the_tool(world):
    turn = begin([MAIL, PAY])

    receipts = SimulatedReviewer({"mail": Approve(), "pay": Reject("no")}).work()

    turn.refresh_from_db()
    assert turn.status == "completed"
    assert [receipt.decision for receipt in receipts] == ["approve", "reject"]
    assert world.effects == [("mail", {"to": "a"})]
    assert full_events(rows(turn)[0])[1].via == "simulated"


def test_a_rule_sees_the_row_and_may_leave_it_to_others(world):
    small, large = begin([PAY]), begin([call("pay", "q", order="B", amount=1000)])

    def rule(row):
        return Approve() if int(row.args["amount"]) < 100 else None

    SimulatedReviewer({"pay": rule}).work()

    small.refresh_from_db()
    large.refresh_from_db()
    assert (small.status, large.status) == ("completed", "suspended")


def test_one_rule_for_everything_goes_on_until_nothing_waits(world):
    turn = begin([MAIL], [MAIL], [PAY])

    receipts = SimulatedReviewer(
        lambda row: Edit({"to": "b"}) if row.tool_name == "mail" else Approve()
    ).work()

    turn.refresh_from_db()
    assert (turn.status, len(receipts)) == ("completed", 3)
    assert [effect[0] for effect in world.effects] == ["mail", "mail", "pay"]
    assert world.effects[0] == ("mail", {"to": "b"})


def test_its_rights_are_checked(django_user_model):
    begin([MAIL])
    nobody = django_user_model.objects.create_user("nobody")

    with pytest.raises(InterruptNotFound):
        SimulatedReviewer({"mail": Approve()}, by=nobody).review()

    assert PendingInterrupt.objects.get().status == "pending"

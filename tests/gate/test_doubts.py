"""A call whose fate is unknown: what a person can answer, and what follows."""

from __future__ import annotations

import pytest

from hitl_approvals import Edit, services
from hitl_approvals.exceptions import (
    InterruptNotFound,
    PayloadRejected,
    ReviewerNotAllowed,
    TransitionNotAllowed,
)
from hitl_approvals.models import DbNow, PendingInterrupt
from tests.support.agents import call
from tests.support.turns import (
    begin,
    decide,
    decide_and_resume,
    events,
    full_events,
    only,
    pass_deadlines,
    pass_execute_by,
    resume,
    settle,
    step_statuses,
    steps,
    waiting,
)
from tests.support.world import acts_then_raises

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
NOTE = call("note", "n", text="x")


def in_doubt(world, *, tool="mail", replies=([MAIL],)):
    """Return a turn that waits for one doubt to be settled."""
    world.plan(tool, acts_then_raises(TimeoutError("read")))
    turn = begin(*replies)
    if turn.status == "suspended" and waiting(turn)[0].status == "pending":
        decide_and_resume(turn)
    (row,) = [row for row in waiting(turn) if row.status == "in_doubt"]
    return turn, row


def test_it_happened_gives_the_typed_result_to_the_model_and_runs_nothing(world):
    turn, row = in_doubt(world)

    settled = settle(row, "happened", result={"mail": 7}, note="It is in the outbox.")

    assert (settled.status, settled.outcome_status) == ("resolved", "succeeded")
    assert resume(turn) == "completed"
    assert world.names() == ["mail"]
    assert turn.output[0]["content"] == '{"mail": 7}'
    assert turn.output[0]["status"] == "ok"
    assert step_statuses(turn) == ["succeeded"]
    assert events(row) == ["raised", "approved", "in_doubt", "settled_happened"]
    last = full_events(row)[-1]
    assert last.detail == {"note": "It is in the outbox."}
    assert (last.actor, last.via) == ("system", "test")


def test_it_happened_for_an_edited_call_still_tells_the_model_of_the_edit(world):
    world.plan("mail", acts_then_raises(TimeoutError("read")))
    turn = begin([MAIL])
    decide_and_resume(turn, Edit({"to": "b"}))

    settle(only(turn), "happened", result="sent")
    resume(turn)

    assert 'to from "a" to "b"' in turn.output[0]["content"]
    assert "sent" in turn.output[0]["content"]


def test_a_result_that_is_no_json_settles_nothing(world):
    turn, row = in_doubt(world)

    with pytest.raises(PayloadRejected):
        settle(row, "happened", result=float("nan"))

    assert only(turn).status == "in_doubt"
    assert events(row) == ["raised", "approved", "in_doubt"]
    turn.refresh_from_db()
    assert (turn.status, turn.undecided) == ("suspended", 1)
    assert step_statuses(turn) == ["unknown"]


def test_running_it_again_is_refused_while_the_first_call_may_be_under_way(world):
    turn, row = in_doubt(world)

    with pytest.raises(TransitionNotAllowed) as refusal:
        settle(row, "run_again")

    assert refusal.value.context["not_before"] == steps(turn)[0].hard_deadline
    assert " s at the earliest" in refusal.value.detail
    assert only(turn).status == "in_doubt"
    assert events(row) == ["raised", "approved", "in_doubt"]


def test_running_it_again_is_a_second_authorization_and_one_more_start(world):
    turn, row = in_doubt(world)
    pass_deadlines(turn)

    settled = settle(row, "run_again")

    assert (settled.status, settled.decision, settled.generation) == (
        "decided",
        "approve",
        2,
    )
    assert resume(turn) == "completed"
    assert world.names() == ["mail", "mail"]
    assert [(one.generation, one.status) for one in steps(turn)] == [
        (1, "unknown"),
        (2, "succeeded"),
    ]
    first, second = steps(turn)
    assert first.idempotency_key != second.idempotency_key
    assert events(row) == [
        "raised",
        "approved",
        "in_doubt",
        "settled_run_again",
        "resolved",
    ]


def test_running_it_again_runs_what_was_approved(world):
    world.plan("mail", acts_then_raises(TimeoutError("read")))
    turn = begin([MAIL])
    decide_and_resume(turn, Edit({"to": "b"}))
    pass_deadlines(turn)

    settle(only(turn), "run_again")
    resume(turn)

    assert [args["to"] for _name, args in world.effects] == ["b", "b"]


def test_a_second_authorization_lapses_like_the_first(world):
    turn, row = in_doubt(world)
    pass_deadlines(turn)

    settled = settle(row, "run_again")

    found = PendingInterrupt.objects.annotate(now=DbNow()).get(pk=row.pk)
    assert settled.execute_by is not None
    assert 86_000 < (found.execute_by - found.now).total_seconds() <= 86_400
    assert full_events(row)[-1].execute_by is not None
    pass_execute_by(row)
    assert resume(turn) == "suspended"
    assert world.names() == ["mail"]
    assert events(row)[-1] == "lapsed"


def test_giving_up_runs_nothing_and_tells_the_model_that_nobody_knows(world):
    turn, row = in_doubt(world)

    settled = settle(row, "give_up", note="The bank does not answer.")

    assert (settled.status, settled.outcome_status) == ("cancelled", "given_up")
    assert resume(turn) == "completed"
    assert world.names() == ["mail"]
    (told,) = turn.output
    assert told["status"] == "unknown"
    assert "not known whether this call happened" in told["content"]
    assert step_statuses(turn) == ["unknown"]
    assert events(row) == ["raised", "approved", "in_doubt", "settled_gave_up"]


@pytest.mark.parametrize(
    ("answer", "effects", "status"),
    [("happened", 1, "ok"), ("run_again", 2, "ok"), ("give_up", 1, "unknown")],
)
def test_a_free_calls_doubt_is_settled_in_the_same_ways(world, answer, effects, status):
    turn, row = in_doubt(world, tool="note", replies=([NOTE],))
    assert row.decision is None
    pass_deadlines(turn)

    settle(row, answer)

    assert resume(turn) == "completed"
    assert world.names() == ["note"] * effects
    assert turn.output[0]["status"] == status


def test_the_second_start_of_a_free_call_names_who_authorized_it(world, make_user):
    turn, row = in_doubt(world, tool="note", replies=([NOTE],))
    pass_deadlines(turn)
    settler = make_user("sina", "view_pendinginterrupt", "settle_pendinginterrupt")

    settled = settle(row, "run_again", by=settler, via="admin")

    assert (settled.decided_by_label, settled.decided_via) == ("sina", "admin")
    assert settled.decided_by_id == settler.pk
    assert settled.decided_at is not None


def test_a_turn_waits_until_every_doubt_is_settled(world):
    world.plan("mail", *[acts_then_raises(TimeoutError("read"))] * 2)
    turn = begin([MAIL, call("mail", "k", to="b")])
    decide_and_resume(turn)
    first, second = waiting(turn)
    assert turn.undecided == 2

    settle(first, "give_up")
    assert resume(turn) == "dropped"
    settle(second, "happened", result="sent")

    assert resume(turn) == "completed"
    assert [one["status"] for one in turn.output] == ["unknown", "ok"]
    assert len(world.effects) == 2


def test_a_doubt_beside_an_undecided_call_waits_for_both(world):
    turn, row = in_doubt(world, tool="note", replies=([NOTE, MAIL],))
    assert turn.undecided == 2

    settle(row, "happened", result="noted")
    turn.refresh_from_db()
    assert (turn.status, turn.undecided) == ("suspended", 1)

    decide_and_resume(turn)
    assert turn.status == "completed"
    assert world.names() == ["note", "mail"]


def test_a_doubt_cannot_be_decided_and_a_pending_call_cannot_be_settled(world):
    turn, row = in_doubt(world)
    with pytest.raises(TransitionNotAllowed, match="settled, not decided"):
        decide(row)

    other = begin([MAIL])
    with pytest.raises(TransitionNotAllowed, match="not in doubt"):
        settle(only(other), "give_up")
    assert only(turn).status == "in_doubt"


def test_a_doubt_is_settled_once(world):
    _turn, row = in_doubt(world)
    settle(row, "give_up")

    with pytest.raises(TransitionNotAllowed, match="not in doubt"):
        settle(row, "happened", result="x")

    assert events(row)[-1] == "settled_gave_up"


def test_an_unknown_answer_is_refused(world):
    _turn, row = in_doubt(world)

    with pytest.raises(ValueError, match="happened, run_again, give_up"):
        settle(row, "perhaps")


def test_settling_needs_its_own_right(world, make_user, reviewer):
    _turn, row = in_doubt(world)
    settler = make_user("sina", "view_pendinginterrupt", "settle_pendinginterrupt")

    with pytest.raises(ReviewerNotAllowed, match="Can settle"):
        settle(row, "give_up", by=reviewer)
    with pytest.raises(InterruptNotFound):
        settle(row, "give_up", by=make_user("nobody"))
    with pytest.raises(InterruptNotFound):
        services.settle("no uuid", "give_up", by=None, via="test")
    settle(row, "give_up", by=settler)

    assert full_events(row)[-1].actor == "sina"

"""What the adapters of other frameworks share, without any framework."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_approvals import Edit, Reject
from hitl_approvals.agents.snapshots import can_read
from hitl_approvals.models import AgentTurn
from hitl_approvals.testing.failpoints import armed
from tests.frameworks import toy
from tests.support import turns
from tests.support.world import raises, world

pytestmark = pytest.mark.django_db(transaction=True)


class Died(BaseException):
    """The process is gone at this point."""


def die() -> None:
    raise Died


def call(id_: str, name: str, **args: Any) -> dict[str, Any]:
    return {"id": id_, "name": name, "args": args}


PAY = call("c1", "pay", order="A1", amount="5")
MAIL = call("c2", "mail", to="kim")
NOTE = call("c3", "note", text="hello")


def test_gated_calls_of_a_reply_wait_together_and_free_ones_run_once() -> None:
    turn = turns.begin([PAY, MAIL, NOTE], agent="toy")

    assert turn.status == "suspended"
    assert [row.tool_name for row in turns.rows(turn)] == ["pay", "mail"]
    assert world.names() == ["note"]

    turns.decide_and_resume(turn)

    assert turn.status == "completed"
    assert sorted(world.names()) == ["mail", "note", "pay"]
    assert [row.outcome_status for row in turns.rows(turn)] == ["succeeded"] * 2


def test_each_call_gets_its_own_decision() -> None:
    turn = turns.begin(
        [PAY, call("c9", "pay", order="B2", amount="7"), MAIL], agent="toy"
    )
    first, second, third = turns.rows(turn)

    turns.decide(first)
    turns.decide(second, Edit({"order": "B2", "amount": "3", "note": ""}))
    turns.decide(third, Reject("not now"))
    turns.resume(turn)

    assert [args["amount"] for _, args in world.effects] == [5, 3]
    paid, edited, refused = turn.output[0]
    assert "effect" in paid
    assert "A reviewer changed this call" in edited
    assert refused.endswith("Reason: not now")


def test_it_may_pause_again_and_ids_may_come_again() -> None:
    again = call("c1", "pay", order="B2", amount="7")
    turn = turns.begin([PAY], [again], agent="toy")
    turns.decide_and_resume(turn)

    assert turn.status == "suspended"
    assert [args["order"] for _, args in world.effects] == ["A1"]

    turns.decide_and_resume(turn)

    assert [args["order"] for _, args in world.effects] == ["A1", "B2"]
    assert turn.status == "completed"


def test_replies_and_effects_of_a_run_that_died_are_replayed() -> None:
    turn = turns.begin([PAY], [NOTE], [call("c4", "note", text="bye")], agent="toy")
    turns.decide(turns.only(turn))
    with armed("end.before_commit", die), pytest.raises(Died):
        turns.resume(turn)
    turns.recover(turn)

    assert world.names() == ["pay", "note", "note"]
    assert [len(reply) for reply in toy.asked] == [1, 1, 1]


def test_a_call_in_doubt_goes_to_a_person_and_the_others_run() -> None:
    world.plan("pay", raises(TimeoutError("no answer")))
    turn = turns.begin([PAY, MAIL], agent="toy")

    turns.decide_and_resume(turn)

    pay, mail = turns.rows(turn)
    assert (pay.status, mail.outcome_status) == ("in_doubt", "succeeded")
    turns.settle(pay, "happened")
    turns.resume(turn)
    assert turn.status == "completed"
    assert world.names() == ["mail"]


def test_what_another_version_paused_is_a_visible_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn = turns.begin([PAY], agent="toy")
    newer = {**turn.state, "framework_version": "999.0"}
    AgentTurn.objects.filter(pk=turn.pk).update(state=newer)

    turns.decide_and_resume(turn)

    assert turn.status == "needs_attention"
    assert "paused by django 999.0" in turn.last_error + turn.error
    assert turns.only(turn).status == "decided"
    assert world.effects == []


@pytest.mark.parametrize(
    ("reads", "wrote", "fits"),
    [
        ("2.1", "2.1", True),
        ("2.2", "2.1", True),
        ("2.1", "2.2", False),
        ("3.0", "2.2", False),
        ("0.25", "0.24", True),
        ("", "1.0", False),
    ],
)
def test_a_version_reads_what_older_ones_of_its_major_wrote(
    reads: str, wrote: str, fits: bool
) -> None:
    assert can_read(reads, wrote) is fits

"""`turn.once`: an effect outside of tools, at most once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hitl_approvals import Turn, agent, run_turn, services, start_turn
from hitl_approvals.models import (
    AgentTurn,
    DbNow,
    PendingInterrupt,
    TurnStep,
    db_now_plus,
)

pytestmark = pytest.mark.django_db(transaction=True)
DONE: list[str] = []
FAILS: list[BaseException] = []


class Crash(BaseException):
    """The process died here."""


def _do() -> dict[str, int]:
    DONE.append("done")
    if FAILS:
        raise FAILS.pop()
    return {"times": len(DONE)}


@agent("once")
def once(turn: Turn, prompt: str) -> Any:
    first = turn.once("first", _do)
    if prompt == "fails" and turn.step("tried", DONE.count, "tried") == 0:
        DONE.append("tried")
        raise RuntimeError("after the effect")
    return [first, turn.once("second", _do)]


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()
    FAILS.clear()


def test_each_key_is_done_once_and_replayed_afterwards() -> None:
    turn = start_turn("once", "go", run=True)

    assert turn.output == [{"times": 1}, {"times": 2}]
    names = TurnStep.objects.filter(turn=turn).values_list("name", "status")
    assert sorted(names) == [("once:first", "succeeded"), ("once:second", "succeeded")]


def test_an_error_after_it_does_not_do_it_again() -> None:
    turn = start_turn("once", "fails", run=True)
    assert turn.status == "ready"

    AgentTurn.objects.filter(pk=turn.pk).update(next_run_at=DbNow())
    run_turn(turn.pk)

    assert DONE.count("done") <= 2
    assert TurnStep.objects.filter(turn=turn, name="once:first").count() == 1


def test_a_crash_in_it_is_shown_to_a_person_and_never_repeated_in_silence() -> None:
    FAILS.append(Crash())
    with pytest.raises(Crash):
        start_turn("once", "go", run=True)
    turn = AgentTurn.objects.get()
    AgentTurn.objects.update(lease_until=db_now_plus(-timedelta(seconds=1)))

    services.sweep()
    AgentTurn.objects.update(next_run_at=DbNow())
    assert run_turn(turn.pk) == "suspended"

    row = PendingInterrupt.objects.get(turn=turn)
    assert (row.status, row.tool_name) == ("in_doubt", "once:first")
    assert DONE == ["done"]
    services.settle(
        row.pk, "happened", by=None, via="test", result={"times": 1}, note="seen"
    )
    assert run_turn(turn.pk) == "completed"
    assert DONE == ["done", "done"]

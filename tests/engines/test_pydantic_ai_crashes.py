"""Pydantic AI: processes that die, that come second, and that come at the same time."""

from __future__ import annotations

import signal
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hitl_approvals import Edit, run_turn
from hitl_approvals.models import InterruptEvent
from hitl_approvals.registry import registry
from hitl_approvals.testing.failpoints import armed
from tests.concurrency.meeting import together
from tests.engines import pydantic_ai_process as process
from tests.engines import pydantic_ai_scripts as scripts
from tests.engines.pydantic_ai_scripts import call, read_output
from tests.support import turns
from tests.support.world import world as the_world

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]

PAY = call("c1", "pay", order="A1", amount="5")
NOTE = call("c3", "note", text="hello")


class Died(BaseException):
    """The process is gone at this point."""


def die() -> None:
    raise Died


@pytest.fixture(autouse=True)
def pydantic_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.agents, scripts.NAME, scripts.define())


def begin(*replies: list[Any]) -> Any:
    return turns.begin(*replies, agent=scripts.NAME)


def begin_and_die(point: str, *replies: list[Any]) -> Any:
    from hitl_approvals.models import AgentTurn

    with armed(point, die), pytest.raises(Died):
        begin(*replies)
    turn = AgentTurn.objects.get()
    turns.recover(turn)
    return turn


@pytest.mark.parametrize("point", ["model.after_reply", "suspend.before_commit"])
def test_a_start_that_died_asks_the_model_and_runs_free_calls_once(point: str) -> None:
    turn = begin_and_die(point, [PAY, NOTE])

    assert turn.status == "suspended"
    assert the_world.names() == ["note"]
    # The first reply was lost only where nothing had recorded it yet.
    lost = point == "model.after_reply"
    assert the_world.model_calls == ["reply 0"] * (2 if lost else 1)
    assert [row.tool_name for row in turns.rows(turn)] == ["pay"]


def test_replies_and_effects_after_a_pause_are_replayed() -> None:
    turn = begin([PAY], [NOTE], [call("c4", "note", text="bye")])
    turns.decide(turns.only(turn))
    with armed("end.before_commit", die), pytest.raises(Died):
        turns.resume(turn)

    turns.recover(turn)

    assert turn.status == "completed"
    assert the_world.names() == ["pay", "note", "note"]
    # The last reply stood in the transaction that was lost; the others are on record.
    assert the_world.model_calls == [f"reply {n}" for n in (0, 1, 2, 3, 3)]
    assert list(read_output(turn)) == ["c1", "c3", "c4"]


def test_a_crash_between_two_pauses_keeps_the_edit_and_the_replies() -> None:
    turn = begin([PAY], [NOTE, call("c1", "pay", order="B2", amount="7")])
    turns.decide(turns.only(turn), Edit({"order": "A1", "amount": "2"}))
    with armed("suspend.before_commit", die), pytest.raises(Died):
        turns.resume(turn)

    turns.recover(turn)

    assert turn.status == "suspended"
    assert the_world.names() == ["pay", "note"]
    assert the_world.model_calls == ["reply 0", "reply 1"]
    turns.decide_and_resume(turn)
    assert turn.status == "completed"
    assert [args.get("amount") for _, args in the_world.effects] == [2, None, 7]


def test_a_second_process_goes_on_where_the_first_one_paused(tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    turn = begin([PAY, NOTE], [call("c1", "mail", to="kim")])
    turns.decide(turns.only(turn))

    output = process.finish(process.start(turn.pk, effects))

    assert "suspended after 1 replies" in output
    assert [name for name, _ in process.done(effects)] == ["pay"]
    turn.refresh_from_db()
    assert [row.tool_name for row in turns.waiting(turn)] == ["mail"]
    turns.decide_and_resume(turn)
    assert turn.status == "completed"
    assert the_world.names() == ["note", "mail"]


def test_two_processes_that_resume_at_once_run_it_once(tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    turn = begin([PAY, call("c2", "mail", to="kim")])
    for row in turns.rows(turn):
        turns.decide(row)

    both = [process.start(turn.pk, effects) for _ in range(2)]
    outputs = [process.finish(one) for one in both]

    turn.refresh_from_db()
    assert turn.status == "completed", outputs
    assert Counter(name for name, _ in process.done(effects)) == {"pay": 1, "mail": 1}
    assert sum("completed" in one for one in outputs) == 1
    assert sum("dropped" in one for one in outputs) == 1
    resolved = InterruptEvent.objects.filter(turn_id=turn.pk, type="resolved")
    assert resolved.count() == 2


def test_threads_that_resume_two_turns_at_once_do_not_meet() -> None:
    first, second = begin([PAY], [NOTE]), begin([PAY], [NOTE])
    for turn in (first, second):
        turns.decide(turns.only(turn))

    outcomes = together(*(partial(run_turn, turn.pk) for turn in (first, second)))

    assert outcomes == ["completed", "completed"]
    assert Counter(the_world.names()) == {"pay": 2, "note": 2}


def test_threads_that_resume_one_turn_at_once_run_it_once() -> None:
    turn = begin([PAY], [NOTE])
    turns.decide(turns.only(turn))

    outcomes = together(*(partial(run_turn, turn.pk) for _ in range(4)))

    assert Counter(outcomes) == {"completed": 1, "dropped": 3}
    assert the_world.names() == ["pay", "note"]


def test_a_process_killed_in_an_unsafe_tool_leaves_a_doubt(tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    turn = begin([PAY, call("c2", "mail", to="kim")])
    for row in turns.rows(turn):
        turns.decide(row)

    killed = process.start(turn.pk, effects, "pay")
    process.finish(killed)
    assert killed.returncode == -signal.SIGKILL
    turns.recover(turn)

    pay, mail = turns.rows(turn)
    assert (turn.status, pay.status) == ("suspended", "in_doubt")
    assert (mail.status, mail.outcome_status) == ("resolved", "succeeded")
    assert [name for name, _ in process.done(effects)] == ["pay"]
    assert the_world.names() == ["mail"]

    turns.settle(pay, "happened")
    turns.resume(turn)

    assert turn.status == "completed"
    assert the_world.names() == ["mail"]
    assert the_world.model_calls == ["reply 0", "reply 1"]


def test_a_process_killed_in_an_idempotent_tool_is_repeated_under_its_key(
    tmp_path: Path,
) -> None:
    effects = tmp_path / "effects"
    turn = begin([call("c1", "transfer", to="kim")])
    turns.decide(turns.only(turn))

    killed = process.start(turn.pk, effects, "transfer")
    process.finish(killed)
    assert killed.returncode == -signal.SIGKILL
    turns.recover(turn)

    assert turn.status == "completed"
    ((name, key),) = process.done(effects)
    assert (name, the_world.keys) == ("transfer", [key])
    assert turns.only(turn).outcome_status == "succeeded"


def test_a_process_killed_in_a_free_tool_leaves_a_doubt(tmp_path: Path) -> None:
    from hitl_approvals import start_turn

    effects = tmp_path / "effects"
    turn = start_turn(scripts.NAME, [[NOTE, PAY]])

    killed = process.start(turn.pk, effects, "note")
    process.finish(killed)
    assert killed.returncode == -signal.SIGKILL
    turns.recover(turn)

    (row,) = turns.waiting(turn)
    assert (row.tool_name, row.status) == ("note", "in_doubt")
    turns.settle(row, "happened")
    turns.resume(turn)
    turns.decide_and_resume(turn)
    assert turn.status == "completed"
    assert the_world.names() == ["pay"]

"""A process of a graph is killed at every point that it passes; nothing runs twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitl_approvals import Respond, run_turn, services, start_turn
from hitl_approvals.enums import InterruptStatus
from hitl_approvals.models import AgentTurn, PendingInterrupt, TurnStep
from hitl_approvals.testing.checkpoint_graphs import noted
from hitl_approvals.testing.failpoints import VARIABLE
from tests.crash.children import Child, arm
from tests.executor.killed_graph import executor  # noqa: F401  registers the graph
from tests.support.turns import go_silent, make_due, pass_deadlines, settle

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]

RECORD = [
    (point, skip)
    for point in ("record.before_commit", "record.after_commit")
    for skip in range(3)
]
"""Passed when the graph's names, a node and an effect are written."""
FIRST_RUN = [
    ("claim.after_commit", 0),
    *RECORD,
    ("gate.before_commit", 0),
    ("gate.after_commit", 0),
    ("tool.after_call", 0),
    ("suspend.before_commit", 0),
    ("suspend.after_commit", 0),
]
SECOND_RUN = [
    ("claim.after_commit", 0),
    *RECORD,
    ("gate.before_commit", 0),
    ("gate.after_commit", 0),
    ("tool.after_call", 0),
    ("end.before_commit", 0),
    ("end.after_commit", 0),
]


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    os.environ.pop(VARIABLE, None)


def run_and_die(turn: AgentTurn, point: str, skip: int, folder: Path) -> None:
    """Run a turn in a process that is killed when it passes a point for the n-th time."""

    def work() -> None:
        arm(point, "kill", folder / "mark")
        from hitl_approvals import failpoints

        armed, passed = failpoints._hook, []

        def hook(name: str) -> None:
            if name == point:
                passed.append(name)
            if len(passed) > skip:
                armed(name)

        failpoints.set_hook(hook)
        run_turn(turn.pk)

    child = Child("graph", work, folder / "log")
    try:
        assert child.hit(signal.SIGKILL, seconds=30), (folder / "log").read_text()
    finally:
        child.kill()


def go_on(turn: AgentTurn) -> None:
    """Let time pass and people settle, until the turn waits for an answer or is over."""
    for _round in range(6):
        turn.refresh_from_db()
        if turn.status == "running":
            go_silent(turn)
        for row in PendingInterrupt.objects.filter(
            turn=turn, status=InterruptStatus.IN_DOUBT
        ):
            pass_deadlines(turn)
            happened = row.context["asked"]["effects"]
            done = row.tool_name.removeprefix("once:") in noted(Path(happened))
            if done:
                settle(row, "happened", result=None)
            else:
                settle(row, "run_again")
        make_due(turn)
        run_turn(turn.pk)
        turn.refresh_from_db()
        waits = PendingInterrupt.objects.filter(turn=turn, status="pending").exists()
        if waits or turn.status == "completed":
            return
    raise AssertionError((turn.status, turn.last_error))


@pytest.mark.parametrize(("point", "skip"), FIRST_RUN)
def test_killed_before_the_question(point: str, skip: int, tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    turn = start_turn("killed", {"effects": str(effects)})

    run_and_die(turn, point, skip, tmp_path)
    go_on(turn)
    answer_and_finish(turn, effects)


@pytest.mark.parametrize(("point", "skip"), SECOND_RUN)
def test_killed_after_the_answer(point: str, skip: int, tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    turn = start_turn("killed", {"effects": str(effects)}, run=True)
    assert turn.status == "suspended"
    row = PendingInterrupt.objects.get(turn=turn)
    services.decide(row.pk, Respond(False), by=None, via="test")

    run_and_die(turn, point, skip, tmp_path)
    go_on(turn)
    assert_finished(turn, effects)


def answer_and_finish(turn: AgentTurn, effects: Path) -> None:
    row = PendingInterrupt.objects.get(turn=turn, status="pending")
    services.decide(row.pk, Respond(False), by=None, via="test")
    go_on(turn)
    assert_finished(turn, effects)


def assert_finished(turn: AgentTurn, effects: Path) -> None:
    turn.refresh_from_db()
    assert (turn.status, turn.output) == ("completed", ["charged", False])
    told = noted(effects)
    assert told.count("charge") == 1
    assert told.count("receipt") == 1
    names = [
        step.name
        for step in TurnStep.objects.filter(turn=turn, kind="node").order_by("position")
    ]
    assert names == ["prepare", "ask", "finish"]

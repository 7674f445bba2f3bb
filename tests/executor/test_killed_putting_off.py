"""A worker is killed while it puts a turn off whose engine is away; nothing is lost."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hitl_approvals import run_turn, services
from hitl_approvals.enums import TurnStatus
from hitl_approvals.models import AgentTurn
from hitl_approvals.registry import AgentDefinition, registry
from hitl_approvals.testing.failpoints import VARIABLE
from tests.crash.children import Child, arm
from tests.engines.forwarding import AGENT, PAY, begin_owed, pursue
from tests.frameworks import memory_engine
from tests.frameworks.memory_engine import MemoryEngine
from tests.support import agents, turns

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]

BEFORE, AFTER = "release.before_commit", "release.after_commit"


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    os.environ.pop(VARIABLE, None)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> MemoryEngine:
    made = MemoryEngine()
    monkeypatch.setitem(sys.modules, "hitl_approvals.agents.memory", memory_engine)
    tools = {one.name: one for one in agents.TOOLS}
    definition = AgentDefinition(name=AGENT, target=made, kind="memory", tools=tools)
    monkeypatch.setitem(registry.agents, AGENT, definition)
    return made


def put_off_and_die(turn: AgentTurn, point: str, folder: Path) -> None:
    """Run a turn in a process that is killed at a point while it puts the turn off."""
    turns.make_due(turn)
    mark = folder / f"mark-{len(list(folder.iterdir()))}"

    def work() -> None:
        arm(point, "kill", mark)
        run_turn(turn.pk)

    child = Child("putting off", work, folder / "log")
    try:
        assert child.hit(signal.SIGKILL, seconds=30), (folder / "log").read_text()
    finally:
        child.kill()
    assert mark.exists()
    turn.refresh_from_db()


def begun(*, decided: bool) -> AgentTurn:
    """Return an owed turn: one that never ran, or one that was decided."""
    turn = begin_owed([PAY])
    if decided:
        turns.resume(turn)
        turns.decide(turns.only(turn))
        turn.refresh_from_db()
    assert turn.status == "ready"
    return turn


def finish(turn: AgentTurn, engine: MemoryEngine, world: Any) -> None:
    """Let the engine come back, and see one call, one effect and one answer."""
    engine.start_server()
    pursue(turn)
    if turn.status == "suspended":
        turns.decide(turns.only(turn))
        pursue(turn)
    assert turn.status == "completed"
    assert world.names() == ["pay"]
    assert turns.only(turn).status == "resolved"
    [workflow] = engine.workflows
    assert engine.deliveries(workflow) == 1
    assert len(engine.model_calls) == 1


@pytest.mark.parametrize("decided", [False, True])
def test_killed_before_the_commit_the_sweeper_gives_the_turn_back(
    engine: MemoryEngine, world: Any, tmp_path: Path, decided: bool
) -> None:
    turn = begun(decided=decided)
    engine.stop_server()
    seen = turn.state

    put_off_and_die(turn, BEFORE, tmp_path)

    assert (turn.status, turn.attempts, turn.state) == ("running", 1, seen)
    turns.go_silent(turn)
    assert turn.status == "ready"
    assert "went silent in attempt 1" in turn.last_error
    # The engine is away still. Only the attempt that a worker died in is counted.
    assert turns.resume(turn) == "ready"
    assert (turn.attempts, world.names()) == (1, [])
    assert "Waits for Memory at 127.0.0.1:1" in turn.last_error
    assert ", 1 time: " in turn.last_error
    finish(turn, engine, world)


@pytest.mark.parametrize("decided", [False, True])
def test_killed_after_the_commit_the_turn_is_owed_later(
    engine: MemoryEngine, world: Any, tmp_path: Path, decided: bool
) -> None:
    turn = begun(decided=decided)
    engine.stop_server()

    put_off_and_die(turn, AFTER, tmp_path)

    assert (turn.status, turn.attempts, turn.lease_token) == ("ready", 0, None)
    assert turn.state["data"]["waiting"]["looks"] == 1
    assert "Waits for Memory at 127.0.0.1:1" in turn.last_error
    assert run_turn(turn.pk) == "dropped"  # Not before its time.
    # Nobody announced it: a sweeper does, once it is due.
    assert turn.dispatched_at is None
    put_off_and_die(turn, AFTER, tmp_path)
    assert (turn.status, turn.attempts) == ("ready", 0)
    assert turn.state["data"]["waiting"]["looks"] == 2
    finish(turn, engine, world)


def test_killed_in_every_attempt_it_needs_attention_and_keeps_the_decision(
    engine: MemoryEngine, world: Any, tmp_path: Path
) -> None:
    turn = begun(decided=True)
    engine.stop_server()
    for _attempt in range(turn.max_attempts):
        put_off_and_die(turn, BEFORE, tmp_path)
        turns.go_silent(turn)

    assert turn.status == TurnStatus.NEEDS_ATTENTION
    assert turns.only(turn).status == "decided"
    assert world.names() == []
    services.retry(turn.pk, by=None, via="test")
    finish(turn, engine, world)

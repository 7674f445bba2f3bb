"""The Temporal forwarder, on a real server and real workers."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connections

from hitl_approvals import Reject
from hitl_approvals.agents.following import workflow_id
from hitl_approvals.agents.links import Asking
from hitl_approvals.engines import TemporalWorkflow
from hitl_approvals.registry import AgentDefinition, registry
from tests.engines import parting_process
from tests.engines.forwarding import (
    AGAIN,
    AGENT,
    PAY,
    ForestallingContract,
    begin,
    look,
    pursue,
    statuses,
)
from tests.engines.processes import until
from tests.engines.temporal_support import TemporalHarness
from tests.servers.bound import bound
from tests.support import agents, turns
from tests.support.world import world
from tests.workspace import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]

SIGNALLED = "signalled"
AGENTS: dict[str, dict[str, Any]] = {
    AGENT: {},
    SIGNALLED: {"signals": True},
    "hasty": {"options": {"execution_timeout": timedelta(seconds=2)}},
    "continuing": {"workflow": "Continuing"},
    "together": {"workflow": "Together"},
    "confused": {"workflow": "Confused"},
}
"""Agents by name, and what is special about their workflows."""


@pytest.fixture(scope="module")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalHarness]:
    harness = TemporalHarness(tmp_path_factory.mktemp("temporal"))
    yield harness
    harness.close()


@pytest.fixture
def engine(
    temporal: TemporalHarness, monkeypatch: pytest.MonkeyPatch
) -> TemporalHarness:
    """The server of this module, and agents whose workflows it performs."""
    tools = {one.name: one for one in agents.TOOLS}
    for name, special in AGENTS.items():
        common = {
            "client": temporal.server.address,
            "workflow": "Scripted",
            "task_queue": "hitl-tests",
            "patience": 2,
        }
        address = TemporalWorkflow(**{**common, **special})
        definition = AgentDefinition(
            name=name, target=lambda it=address: it, kind="temporal", tools=tools
        )
        monkeypatch.setitem(registry.agents, name, definition)
    temporal.model_calls.clear()
    return temporal


class TestTemporal(ForestallingContract):
    """What holds for every engine."""


@contextmanager
def celery_worker(engine: TemporalHarness, broker: str, log: Path) -> Iterator[None]:
    """A Celery worker of the site, which forks its pool."""
    queue = f"engines-{uuid4().hex}"
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.engines.celery_settings",
        "HITL_TEST_BASE_SETTINGS": settings.SETTINGS_MODULE,
        "HITL_TEST_QUEUE": queue,
        "HITL_TEST_BROKER": broker,
        "HITL_TEST_TEMPORAL": engine.server.address,
    }
    command = [sys.executable, "-m", "celery", "-A", "tests.engines.celery_site"]
    command += ["worker", "--concurrency=1", "--loglevel=INFO", "-Q", queue]
    connections.close_all()
    with log.open("wb") as output:
        process = subprocess.Popen(
            bound(command), cwd=ROOT, env=environment, stdout=output, stderr=output
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)


def test_a_celery_worker_ends_the_workflow_of_a_turn_whose_canceller_was_killed(
    engine: TemporalHarness, redis_url: str, tmp_path: Path
) -> None:
    """Its sweeper announces what nobody announced, and a process of its pool does it."""
    turn = begin([PAY])
    process = parting_process.killed("cancel", turn.pk)
    assert process.returncode == -signal.SIGKILL, process.stderr
    log = tmp_path / "celery.log"

    def is_settled() -> bool:
        turn.refresh_from_db()
        return turn.next_run_at is None

    with celery_worker(engine, redis_url, log):
        assert until(is_settled, seconds=60), log.read_text()

    assert engine.is_over(workflow_id(turn))
    assert (turn.status, turn.last_error) == ("cancelled", "")


def answer_of(workflow: str, **changes: Any) -> dict[str, Any]:
    result = {"decision": "approve", "args": {}, "message": {"content": "no"}}
    return {
        "round": 1,
        "key": f"{workflow}-x",
        "results": {"c1": result},
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"round": 2}, "There is no round 2"),
        ({"round": 0}, "There is no round 0"),
        ({"round": "1"}, "names its round by a number"),
        ({"results": {}}, r"waits for \['c1'\]; got \[\]"),
        ({"results": {"c2": {}}}, r"got \['c2'\]"),
        ({"results": {"c1": {"decision": "approve"}}}, "lacks"),
        ({"results": None}, "holds a round and its results"),
    ],
)
def test_the_workflow_refuses_nonsense_before_it_enters_its_history(
    engine: TemporalHarness, changes: dict[str, Any], says: str
) -> None:
    from hitl_approvals.engines.rounds import AnswerRefused

    turn = begin([PAY])
    workflow = workflow_id(turn)

    with pytest.raises(AnswerRefused, match=says):
        engine.deliver(workflow, answer_of(workflow, **changes))

    assert engine.deliveries(workflow) == 0
    turns.decide(turns.only(turn), Reject("no"))
    pursue(turn)
    assert statuses(turn) == ["rejected"]


def test_an_answer_that_is_too_large_for_the_server_is_a_visible_stop(
    engine: TemporalHarness,
) -> None:
    """It would be too large for ever; what ran is on record."""
    from hitl_approvals.engines.rounds import AnswerRefused

    workflow = workflow_id(begin([PAY]))
    content = {"content": "x" * 5_000_000, "status": "ok"}
    result = {"decision": "approve", "args": {}, "message": content}

    with pytest.raises(AnswerRefused, match="larger than max"):
        engine.deliver(workflow, answer_of(workflow, results={"c1": result}))


def test_a_workflow_whose_code_fails_at_the_moment_is_waited_for(
    engine: TemporalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server takes no update for it until somebody has mended the code."""
    from temporalio.client import WorkflowHandle
    from temporalio.service import RPCError, RPCStatusCode

    async def fail(*args: Any, **options: Any) -> None:
        raise RPCError(
            "Unable to perform workflow execution update due to Workflow Task in failed "
            "state.",
            RPCStatusCode.FAILED_PRECONDITION,
            b"",
        )

    turn = begin([PAY])
    turns.decide(turns.only(turn))
    with monkeypatch.context() as patch:
        patch.setattr(WorkflowHandle, "execute_update", fail)
        assert turns.resume(turn) == "ready"
        assert turn.attempts == 0
        assert "Workflow Task in failed state" in turn.last_error

    pursue(turn)

    assert turn.status == "completed"
    assert world.names() == ["pay"]


@pytest.mark.parametrize("reapplied", [True, False])
def test_a_workflow_that_was_reset_is_told_again_what_ran(
    engine: TemporalHarness, reapplied: bool
) -> None:
    """It asks for its first round anew, unless the server repeats the answer to it."""
    turn = begin([PAY], [AGAIN])
    turns.decide(turns.only(turn))
    pursue(turn)
    assert turn.status == "suspended"

    engine.reset(workflow_id(turn), reapplied=reapplied)
    turns.decide(turns.waiting(turn)[0])
    pursue(turn)

    assert turn.status == "completed"
    assert [args["order"] for _, args in world.effects] == ["A1", "B2"]
    assert statuses(turn) == ["ok", "ok"]


def test_a_workflow_that_an_operator_paused_is_waited_for(
    engine: TemporalHarness,
) -> None:
    """The SDK knows no such status, and it says nothing about the turn."""
    turn = begin([PAY])
    turns.decide(turns.only(turn))

    engine.pause(workflow_id(turn))
    assert turns.resume(turn) == "ready"

    assert (turn.attempts, world.effects) == (0, [])
    assert "paused" in turn.last_error
    engine.pause(workflow_id(turn), again=True)
    pursue(turn)
    assert turn.status == "completed"
    assert world.names() == ["pay"]


def test_the_server_itself_lets_an_answer_in_once(engine: TemporalHarness) -> None:
    turn = begin([PAY], [AGAIN])
    turns.decide(turns.only(turn))
    pursue(turn)
    workflow = workflow_id(turn)

    engine.deliver(workflow, answer_of(workflow, key=f"{workflow}-1"))
    engine.deliver(workflow, answer_of(workflow))

    assert engine.deliveries(workflow) == 1


def test_a_server_without_updates_gets_the_answer_by_signal(
    engine: TemporalHarness,
) -> None:
    turn = turns.begin([PAY], [AGAIN], agent=SIGNALLED)
    turns.decide(turns.only(turn))
    pursue(turn)
    turns.decide(turns.waiting(turn)[0], Reject("no"))
    pursue(turn)

    assert turn.status == "completed"
    assert world.names() == ["pay"]
    assert statuses(turn) == ["ok", "rejected"]
    assert engine.deliveries(workflow_id(turn)) == 2


def test_a_server_that_says_it_has_no_updates_gets_a_signal(
    engine: TemporalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    from temporalio.client import WorkflowHandle
    from temporalio.service import RPCError, RPCStatusCode

    async def unknown(*args: Any, **options: Any) -> None:
        raise RPCError("unknown method", RPCStatusCode.UNIMPLEMENTED, b"")

    turn = begin([PAY])
    turns.decide(turns.only(turn))
    monkeypatch.setattr(WorkflowHandle, "execute_update", unknown)
    pursue(turn)

    assert turn.status == "completed"
    assert engine.deliveries(workflow_id(turn)) == 1


def test_a_signal_that_does_not_fit_has_no_effect(engine: TemporalHarness) -> None:
    turn = begin([PAY])
    workflow = workflow_id(turn)

    async def signal(client: Any) -> None:
        handle = client.get_workflow_handle(workflow)
        await handle.signal("hitl_decide", answer_of(workflow, results={"c2": {}}))

    engine.ask(signal)
    turns.decide(turns.only(turn), Reject("no"))
    pursue(turn)

    assert statuses(turn) == ["rejected"]


def test_a_workflow_that_runs_out_of_time_fails_its_turn(
    engine: TemporalHarness,
) -> None:
    turn = turns.begin([PAY], agent="hasty")
    assert turn.status == "suspended"
    assert engine.is_over(workflow_id(turn))
    turns.decide(turns.only(turn))
    pursue(turn)

    assert turn.status == "needs_attention"
    assert "is timed out" in turn.last_error
    assert world.effects == []


def test_a_workflow_that_continues_as_new_asks_again(engine: TemporalHarness) -> None:
    turn = turns.begin([PAY], [AGAIN], [PAY], agent="continuing")
    for _round in range(3):
        assert turn.status == "suspended"
        turns.decide(turns.waiting(turn)[0])
        pursue(turn)

    assert turn.status == "completed"
    assert [args["order"] for _, args in world.effects] == ["A1", "B2", "A1"]


def test_rounds_that_are_asked_for_together_wait_one_after_the_other(
    engine: TemporalHarness,
) -> None:
    turn = turns.begin([PAY], [AGAIN], agent="together")
    for _round in range(2):
        (row,) = turns.waiting(turn)
        turns.decide(row)
        pursue(turn)

    assert turn.status == "completed"
    assert statuses(turn) == ["ok", "ok"]
    assert len(world.effects) == 2


def test_calls_that_cannot_be_told_apart_fail_the_workflow(
    engine: TemporalHarness,
) -> None:
    turn = turns.begin([PAY], agent="confused")
    pursue(turn)

    assert turn.status == "failed"
    assert "ids of their own" in turn.error


def test_a_client_of_the_sites_own_is_used(
    engine: TemporalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    from temporalio.client import Client

    made: list[Any] = []

    async def connected() -> Any:
        client = await Client.connect(engine.server.address)
        made.append(client)
        return client

    address = TemporalWorkflow(
        client=connected, workflow="Scripted", task_queue="hitl-tests"
    )
    definition = AgentDefinition(
        name="own",
        target=lambda: address,
        kind="temporal",
        tools={one.name: one for one in agents.TOOLS},
    )
    monkeypatch.setitem(registry.agents, "own", definition)

    turn = turns.begin([PAY], agent="own")

    assert (turn.status, len(made)) == ("suspended", 1)


def test_a_process_keeps_one_connection_to_a_server(engine: TemporalHarness) -> None:
    """The SDK's clients go with the garbage collector only, and their sockets with them."""

    def sockets() -> int:
        names = Path("/proc/self/fd").iterdir()
        return sum(
            str(one.readlink()).startswith("socket")
            for one in names
            if one.is_symlink()
        )

    turn = begin([PAY])
    look(turn)
    before = sockets()
    gc.disable()
    try:
        for _times in range(5):
            assert isinstance(look(turn), Asking)
        assert sockets() == before
    finally:
        gc.enable()


AFTER_A_FORK = """
import asyncio, os, sys, traceback
import django
django.setup()
from temporalio.client import Client
from hitl_approvals.agents.links import EngineAway
from hitl_approvals.agents.temporal import TemporalEngine
from hitl_approvals.engines import TemporalWorkflow

NOWHERE = "127.0.0.1:1"

async def look():
    address = TemporalWorkflow(workflow="any", task_queue="any", client=NOWHERE)
    async with TemporalEngine(address).link():
        pass

try:
    asyncio.run(Client.connect(NOWHERE))
except RuntimeError:
    pass
child = os.fork()
if child == 0:
    code = 1
    try:
        for _times in range(2):
            try:
                asyncio.run(look())
            except EngineAway as away:
                code = 0 if "connect" in str(away) else 2
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_process_that_was_forked_from_one_with_a_client_has_its_own() -> None:
    """The SDK's runtime does not outlive a fork, and will not be used after one."""
    done = subprocess.run(
        [sys.executable, "-c", AFTER_A_FORK],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": settings.SETTINGS_MODULE},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_what_is_no_address_is_a_visible_stop(
    engine: TemporalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = AgentDefinition(name="wrong", target=lambda: 7, kind="temporal")
    monkeypatch.setitem(registry.agents, "wrong", definition)

    turn = turns.begin([PAY], agent="wrong")

    assert (turn.status, turn.attempts) == ("ready", 1)
    assert "returns a TemporalWorkflow" in turn.last_error


def test_a_history_with_every_kind_of_decision_can_be_replayed(
    engine: TemporalHarness,
) -> None:
    """The workflow code asks for the same things in the same order."""
    from temporalio.worker import Replayer

    from tests.engines import temporal_workflows as ours

    turn = begin([PAY], [AGAIN])
    turns.decide(turns.only(turn))
    pursue(turn)
    turns.decide(turns.waiting(turn)[0], Reject("no"))
    pursue(turn)

    async def replay(client: Any) -> Any:
        handle = client.get_workflow_handle(workflow_id(turn))
        history = await handle.fetch_history()
        return await Replayer(workflows=[ours.Scripted]).replay_workflow(history)

    assert engine.ask(replay).replay_failure is None

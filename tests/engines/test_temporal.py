"""The Temporal forwarder, on a real server and real workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hitl_approvals import Reject
from hitl_approvals.agents.forwarder import workflow_id
from hitl_approvals.engines import TemporalWorkflow
from hitl_approvals.registry import AgentDefinition, registry
from tests.engines.forwarding import (
    AGAIN,
    AGENT,
    PAY,
    EngineContract,
    begin,
    pursue,
    statuses,
)
from tests.engines.temporal_support import TemporalHarness
from tests.support import agents, turns
from tests.support.world import world

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]

SIGNALLED = "signalled"


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
    for name, signals in ((AGENT, False), (SIGNALLED, True)):
        address = TemporalWorkflow(
            client=temporal.server.address,
            workflow="Scripted",
            task_queue="hitl-tests",
            signals=signals,
            patience=2,
        )
        definition = AgentDefinition(
            name=name, target=lambda it=address: it, kind="temporal", tools=tools
        )
        monkeypatch.setitem(registry.agents, name, definition)
    temporal.model_calls.clear()
    return temporal


class TestTemporal(EngineContract):
    """What holds for every engine."""


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

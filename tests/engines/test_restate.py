"""The Restate forwarder, on a real server and a real service."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hitl_approvals import Reject, services
from hitl_approvals.agents.following import workflow_id
from hitl_approvals.agents.links import Asking
from hitl_approvals.engines import RestateWorkflow
from hitl_approvals.engines.rounds import AnswerRefused
from hitl_approvals.registry import AgentDefinition, registry
from tests.engines.forwarding import (
    AGENT,
    PAY,
    ServerContract,
    begin,
    let_go,
    look,
    pursue,
    statuses,
)
from tests.engines.restate_support import RestateHarness
from tests.support import agents, turns

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def restate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestateHarness]:
    harness = RestateHarness(tmp_path_factory.mktemp("restate"))
    yield harness
    harness.close()


@pytest.fixture
def engine(restate: RestateHarness, monkeypatch: pytest.MonkeyPatch) -> RestateHarness:
    """The server of this module, and an agent whose workflows its service performs."""
    address = RestateWorkflow(
        ingress=f"http://{restate.server.ingress}",
        admin=f"http://{restate.server.admin}",
        workflow="Scripted",
        patience=2,
    )
    definition = AgentDefinition(
        name=AGENT,
        target=lambda: address,
        kind="restate",
        tools={one.name: one for one in agents.TOOLS},
    )
    monkeypatch.setitem(registry.agents, AGENT, definition)
    restate.model_calls.clear()
    return restate


class TestRestate(ServerContract):
    """What holds for every engine."""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"round": 2}, "There is no round 2"),
        ({"results": {"c2": {}}}, r"got \['c2'\]"),
        ({"results": None}, "holds a round and its results"),
    ],
)
def test_the_workflow_refuses_nonsense(
    engine: RestateHarness, changes: dict[str, Any], says: str
) -> None:
    turn = begin([PAY])
    workflow = workflow_id(turn)
    answer = {"round": 1, "key": f"{workflow}-x", "results": {}, **changes}

    with pytest.raises(AnswerRefused, match=says):
        engine.deliver(workflow, answer)

    assert engine.deliveries(workflow) == 0
    turns.decide(turns.only(turn), Reject("no"))
    pursue(turn)
    assert statuses(turn) == ["rejected"]


@pytest.mark.parametrize("status", [400, 404, 409, 422, 470, 500])
def test_a_workflow_may_fail_with_any_status(
    engine: RestateHarness, status: int
) -> None:
    turn = begin({"fail": "no such order", "status": status})
    pursue(turn)

    assert turn.status == "failed"
    assert turn.error.endswith("failed: no such order")


def test_calls_that_cannot_be_told_apart_fail_the_workflow(
    engine: RestateHarness,
) -> None:
    turn = begin([PAY, PAY])
    pursue(turn)

    assert turn.status == "failed"
    assert "ids of their own" in turn.error


def test_without_an_admin_address_a_workflow_that_stays_open_is_shown(
    engine: RestateHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = registry.agents[AGENT]
    address = replace(known.target(), admin=None)
    monkeypatch.setitem(registry.agents, AGENT, replace(known, target=lambda: address))
    turn = begin([PAY])
    services.cancel(turn.pk, by=None, via="test")

    assert turns.resume(turn) == "cancelled"

    assert isinstance(look(turn), Asking)
    assert turn.next_run_at is not None
    assert f"{workflow_id(turn)} cannot be cancelled from here" in turn.last_error
    assert "names no admin= address" in turn.last_error

    # Somebody adds it, and all is well.
    monkeypatch.setitem(registry.agents, AGENT, known)
    let_go(turn)
    assert engine.is_over(workflow_id(turn))


def test_a_workflow_that_is_not_registered_is_waited_for(
    engine: RestateHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = RestateWorkflow(
        ingress=f"http://{engine.server.ingress}", workflow="Nobody", patience=1
    )
    definition = AgentDefinition(name="empty", target=lambda: address, kind="restate")
    monkeypatch.setitem(registry.agents, "empty", definition)

    turn = turns.begin([PAY], agent="empty")

    assert (turn.status, turn.attempts) == ("ready", 0)
    assert "Waits for Restate at 127.0.0.1" in turn.last_error

"""What the forwarders share, with an engine that needs no server."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hitl_approvals import run_turn, services
from hitl_approvals.agents import base, dbos, restate, temporal
from hitl_approvals.agents.following import LONGEST_WAIT, Following, workflow_id
from hitl_approvals.agents.forwarder import ForwarderAgent, address_of
from hitl_approvals.agents.links import EngineAway
from hitl_approvals.agents.snapshots import Maker
from hitl_approvals.engines import DBOSWorkflow, rounds
from hitl_approvals.exceptions import HitlConfigurationError
from hitl_approvals.models import AgentTurn, DbNow, db_now_plus
from hitl_approvals.registry import AgentDefinition, registry
from hitl_approvals.services.partings import LATE_START
from tests.engines.forwarding import (
    AGAIN,
    AGENT,
    NOTE,
    PAY,
    QUESTION,
    EngineContract,
    begin,
    begin_owed,
    let_go,
    pursue,
)
from tests.frameworks import memory_engine
from tests.frameworks.memory_engine import MemoryEngine
from tests.support import agents, turns
from tests.support.world import world

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> MemoryEngine:
    made = MemoryEngine()
    monkeypatch.setitem(sys.modules, "hitl_approvals.agents.memory", memory_engine)
    definition = AgentDefinition(
        name=AGENT,
        target=made,
        kind="memory",
        tools={one.name: one for one in agents.TOOLS},
    )
    monkeypatch.setitem(registry.agents, AGENT, definition)
    return made


class TestForwarder(EngineContract):
    """What holds for every engine."""


class Elsewhere(memory_engine.Address):
    """Another engine."""

    maker = Maker(framework="elsewhere", distribution="django", adapter=1)


def waits(turn: AgentTurn) -> timedelta:
    """Return for how long a turn was put off."""
    with_now = AgentTurn.objects.annotate(now=DbNow()).get(pk=turn.pk)
    return with_now.next_run_at - with_now.now  # type: ignore[attr-defined]


def test_a_turn_that_waits_for_its_engine_is_looked_at_less_and_less_often(
    engine: MemoryEngine,
) -> None:
    engine.stop_server()
    turn = begin([PAY])
    spans = [waits(turn).total_seconds()]
    for _times in range(8):
        turns.resume(turn)
        spans.append(waits(turn).total_seconds())

    engine.start_server()
    pursue(turn)

    assert (turn.status, turn.last_error) == ("suspended", "")
    assert spans[0] <= 1
    assert 1 < spans[1] <= 2
    assert 0.7 * LONGEST_WAIT < spans[-1] <= LONGEST_WAIT
    assert turn.attempts == 0


def test_a_wait_begins_anew_after_the_workflow_went_on(engine: MemoryEngine) -> None:
    turn = begin([PAY], [AGAIN])
    turns.decide(turns.only(turn))
    engine.stop_server()
    for _times in range(3):
        turns.resume(turn)
    assert ", 3 times: " in turn.last_error
    since = turn.state["data"]["waiting"]["since"]
    assert since[:10] in turn.last_error
    engine.start_server()
    pursue(turn)
    assert "waiting" not in turn.state["data"]
    assert turn.last_error == ""

    turns.decide(turns.waiting(turn)[0])
    engine.stop_server()
    turns.resume(turn)

    assert ", 1 time: it is switched off" in turn.last_error


def test_an_engine_that_shows_a_workflow_and_takes_no_answer_is_asked_less_often(
    engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*args: Any) -> None:
        raise EngineAway("it takes no answers")

    turn = begin([PAY])
    turns.decide(turns.only(turn))
    spans = []
    with monkeypatch.context() as patch:
        patch.setattr(engine, "deliver", away)
        for _times in range(8):
            assert turns.resume(turn) == "ready"
            spans.append(waits(turn).total_seconds())
    assert spans[0] <= 1
    assert 0.7 * LONGEST_WAIT < spans[-1] <= LONGEST_WAIT
    assert ", 8 times: it takes no answers" in turn.last_error

    pursue(turn)

    assert (turn.status, turn.last_error) == ("completed", "")
    assert world.names() == ["pay"]


def test_attempts_that_failed_are_neither_forgotten_nor_used_up_by_waiting(
    engine: MemoryEngine,
) -> None:
    turn = begin([PAY])
    turns.decide(turns.only(turn))
    AgentTurn.objects.filter(pk=turn.pk).update(attempts=2)
    engine.stop_server()
    for _times in range(4):
        turns.resume(turn)

    assert turn.attempts == 2


def test_another_call_in_the_place_of_a_decided_one_is_a_visible_stop(
    engine: MemoryEngine,
) -> None:
    turn = begin([PAY])
    turns.decide(turns.only(turn))
    pending = engine.workflows[workflow_id(turn)].pending
    assert pending is not None
    pending["calls"] = [{**PAY, "args": {"order": "A1", "amount": "500"}}]

    turns.resume(turn)

    assert turn.status == "needs_attention"
    assert world.effects == []
    assert turns.only(turn).status == "decided"


def test_another_question_in_the_same_place_is_asked_anew(
    engine: MemoryEngine,
) -> None:
    turn = begin(QUESTION)
    turns.decide(turns.only(turn), {"type": "respond", "value": "savings"})
    pending = engine.workflows[workflow_id(turn)].pending
    assert pending is not None
    pending["question"] = "which order?"

    turns.resume(turn)

    assert turn.status == "suspended"
    assert turns.waiting(turn)[0].payload == "which order?"


def test_a_workflow_that_went_on_by_itself_runs_no_late_approval(
    engine: MemoryEngine,
) -> None:
    turn = begin([PAY], [NOTE])
    workflow = engine.workflows[workflow_id(turn)]
    workflow.pending = None
    workflow.told.append("nobody answered in time")
    engine.advance(workflow)

    turns.decide(turns.only(turn))
    pursue(turn)

    assert turn.status == "completed"
    assert world.names() == ["note"]
    assert turns.only(turn).outcome_status == "not_requested_again"


def test_results_that_the_workflow_refuses_are_a_visible_stop(
    engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any) -> None:
        raise rounds.AnswerRefused("not these.")

    turn = begin([PAY])
    turns.decide(turns.only(turn))
    with monkeypatch.context() as patch:
        patch.setattr(engine, "deliver", refuse)
        turns.resume(turn)
    assert turn.status == "needs_attention"
    assert "refused the results of its calls: not these." in turn.last_error

    services.retry(turn.pk, by=None, via="test")
    pursue(turn)

    assert turn.status == "completed"
    assert world.names() == ["pay"]


def test_a_workflow_that_a_late_worker_starts_is_ended_too(
    engine: MemoryEngine,
) -> None:
    """A run had the turn when it was cancelled, and had not started anything yet."""
    engine.stop_server()
    turn = begin([PAY])
    engine.start_server()
    services.cancel(turn.pk, by=None, via="test")
    turns.resume(turn)
    assert f"There is no workflow {workflow_id(turn)}" in turn.last_error

    engine.start(workflow_id(turn), [[PAY]])
    let_go(turn)

    assert engine.is_over(workflow_id(turn))


def test_a_workflow_that_nobody_starts_is_not_looked_for_for_ever(
    engine: MemoryEngine,
) -> None:
    engine.stop_server()
    turn = begin([PAY])
    engine.start_server()
    services.cancel(turn.pk, by=None, via="test")
    AgentTurn.objects.filter(pk=turn.pk).update(finished_at=db_now_plus(-LATE_START))

    turns.resume(turn)

    assert (turn.next_run_at, engine.workflows) == (None, {})


def test_a_worker_that_started_one_too_late_has_it_ended(
    engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was frozen for so long that nobody looks any more."""
    turn = begin_owed([PAY])
    keep = Following._keep

    def after_the_end(following: Following, state: Any) -> None:
        services.cancel(turn.pk, by=None, via="test")
        AgentTurn.objects.filter(pk=turn.pk).update(next_run_at=None)
        keep(following, state)

    monkeypatch.setattr(Following, "_keep", after_the_end)
    assert run_turn(turn.pk) == "lost"
    assert not engine.is_over(workflow_id(turn))

    let_go(turn)

    assert engine.is_over(workflow_id(turn))


@pytest.mark.parametrize("kind", ["function", "temporal"])
def test_a_workflow_of_the_kind_that_an_agent_had_before_is_named_and_not_forgotten(
    engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    turn = begin([PAY])
    known = registry.agents[AGENT]
    other = replace(known, kind=kind, target=None)
    monkeypatch.setitem(registry.agents, AGENT, other)
    # Another engine would know no such workflow, which is no sign that it is over.
    monkeypatch.setattr(
        "hitl_approvals.agents.parting.load",
        lambda asked: (
            base.load(asked)
            if asked is not other
            else ForwarderAgent(asked, Elsewhere(MemoryEngine()))
            if kind == "temporal"
            else object()
        ),
    )
    services.cancel(turn.pk, by=None, via="test")

    assert turns.resume(turn) == "cancelled"

    assert f"The workflow {workflow_id(turn)} is of kind 'memory'" in turn.last_error
    assert turn.next_run_at is not None
    assert not engine.is_over(workflow_id(turn))

    monkeypatch.setitem(registry.agents, AGENT, known)
    let_go(turn)

    assert engine.is_over(workflow_id(turn))
    assert (turn.next_run_at, turn.last_error) == (None, "")


def test_an_address_that_is_none_is_named_without_what_it_holds() -> None:
    url = "postgresql://kim:secret@db.example/sys"
    definition = AgentDefinition(name="wrong", target=lambda: url, kind="dbos")

    with pytest.raises(HitlConfigurationError, match="DBOSWorkflow; got a str") as told:
        address_of(definition, DBOSWorkflow)

    assert "secret" not in str(told.value)


@pytest.mark.parametrize("kind", [temporal, dbos, restate])
def test_each_kind_declares_what_it_can_do_without_its_sdk(kind: Any) -> None:
    assert kind.CAPABILITIES.durability == "engine"


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        ([], "no call"),
        ([{"name": "pay"}], "needs an id"),
        ([{"id": ""}], "needs an id"),
        ([{"id": "a"}, {"id": "a"}], "ids of their own"),
    ],
)
def test_calls_that_cannot_be_told_apart_are_refused(
    calls: list[Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        rounds.calls_of(calls)


def test_an_answer_is_let_in_once_and_only_if_it_fits() -> None:
    pending = {"round": 2, **rounds.calls_of([PAY])}
    fits = {"decision": "approve", "args": {}, "message": {}}

    rounds.check(pending, 2, {"round": 2, "results": {"c1": fits}})
    with pytest.raises(rounds.AlreadyAnswered):
        rounds.check(pending, 2, {"round": 1, "results": {"c1": fits}})
    with pytest.raises(rounds.AlreadyAnswered):
        rounds.check(None, 2, {"round": 2, "results": {"c1": fits}})
    for wrong in (
        None,
        {"round": 2},
        {"round": True, "results": {}},
        {"round": 3, "results": {"c1": fits}},
        {"round": 0, "results": {"c1": fits}},
        {"round": 2, "results": {"c1": fits, "c2": fits}},
        {"round": 2, "results": {"c1": "yes"}},
    ):
        with pytest.raises(rounds.AnswerRefused):
            rounds.check(pending, 2, wrong)

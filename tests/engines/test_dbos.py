"""The DBOS forwarder, on a real application and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hitl_approvals import Reject, Respond
from hitl_approvals.agents.base import load
from hitl_approvals.agents.following import workflow_id
from hitl_approvals.engines import DBOSWorkflow
from hitl_approvals.registry import AgentDefinition, registry
from hitl_approvals.services import control
from tests.engines.dbos_support import Database, DBOSHarness
from tests.engines.forwarding import (
    AGAIN,
    AGENT,
    PAY,
    QUESTION,
    ForestallingContract,
    begin,
    pursue,
    statuses,
)
from tests.support import agents, turns

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]

WORKFLOWS = {
    AGENT: "scripted",
    "in_async": "scripted_async",
    "not_json": "not_json",
}


@pytest.fixture(scope="module")
def dbos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DBOSHarness]:
    with Database("dbos") as database:
        harness = DBOSHarness(tmp_path_factory.mktemp("dbos"), database)
        yield harness
        harness.close()


@pytest.fixture
def engine(dbos: DBOSHarness, monkeypatch: pytest.MonkeyPatch) -> DBOSHarness:
    """The application of this module, and agents whose workflows it performs."""
    tools = {one.name: one for one in agents.TOOLS}
    for name, workflow in WORKFLOWS.items():
        address = DBOSWorkflow(
            database=dbos.url, workflow=workflow, queue="hitl-tests", patience=2
        )
        definition = AgentDefinition(
            name=name, target=lambda it=address: it, kind="dbos", tools=tools
        )
        monkeypatch.setitem(registry.agents, name, definition)
    dbos.model_calls.clear()
    return dbos


class TestDBOS(ForestallingContract):
    """What holds for every engine."""


def test_what_does_not_fit_has_no_effect_on_the_workflow(engine: DBOSHarness) -> None:
    turn = begin([PAY])
    workflow = workflow_id(turn)
    answer = {"round": 1, "key": "x", "results": {"c2": {}}}

    engine.deliver(workflow, answer)
    engine.deliver(workflow, {**answer, "key": "y", "results": None})

    turns.decide(turns.only(turn), Reject("no"))
    pursue(turn)
    assert turn.status == "completed"
    assert statuses(turn) == ["rejected"]


def test_an_async_workflow_waits_in_the_same_way(engine: DBOSHarness) -> None:
    turn = turns.begin([PAY, AGAIN | {"id": "c2"}], QUESTION, agent="in_async")
    first, second = turns.rows(turn)
    turns.decide(first, Reject("no"))
    turns.decide(second)
    pursue(turn)
    turns.decide(turns.waiting(turn)[0], Respond("savings"))
    pursue(turn)

    assert turn.status == "completed"
    assert [one["decision"] for one in turn.output[0]] == ["reject", "approve"]
    assert turn.output[1]["value"] == "savings"


@pytest.mark.parametrize("policy", [{}, {"workflow_id_reuse_policy": "reject"}])
def test_a_turn_that_is_restarted_with_another_workflow_ends_the_one_before(
    engine: DBOSHarness, monkeypatch: pytest.MonkeyPatch, policy: dict[str, str]
) -> None:
    """The id of the one before is taken, under another name, which is no fault of it."""
    turn = begin([PAY])
    first = workflow_id(turn)
    known = registry.agents[AGENT]
    other = replace(known.target(), workflow="scripted_async", options=policy)
    monkeypatch.setitem(registry.agents, AGENT, replace(known, target=lambda: other))

    control.restart_open(turn.pk, by=None, via="test", changes={})
    pursue(turn)

    assert (turn.status, turn.last_error) == ("suspended", "")
    assert engine.is_over(first)
    turns.decide(turns.waiting(turn)[0])
    pursue(turn)
    assert turn.status == "completed"


def test_a_result_that_is_not_json_fails_the_turn(engine: DBOSHarness) -> None:
    turn = turns.begin([], agent="not_json")
    pursue(turn)

    assert turn.status == "failed"
    assert "its result cannot be kept" in turn.error


def test_a_database_without_dbos_is_waited_for(
    engine: DBOSHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = DBOSWorkflow(
        database=engine.url.replace(engine.database.name, "postgres"),
        workflow="scripted",
        queue="hitl-tests",
    )
    definition = AgentDefinition(name="empty", target=lambda: address, kind="dbos")
    monkeypatch.setitem(registry.agents, "empty", definition)

    turn = turns.begin([PAY], agent="empty")

    assert (turn.status, turn.attempts) == ("ready", 0)
    assert "does not answer" in turn.last_error
    assert "postgresql://" not in turn.last_error


def test_a_file_of_sqlite_is_a_database_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DBOS takes one where nothing but one process on this machine needs it."""
    file = tmp_path / "sys.sqlite"
    address = DBOSWorkflow(
        database=f"sqlite:///{file}", workflow="scripted", queue="hitl-tests"
    )
    definition = AgentDefinition(name="file", target=lambda: address, kind="dbos")
    monkeypatch.setitem(registry.agents, "file", definition)

    turn = turns.begin([PAY], agent="file")

    assert (turn.status, turn.attempts) == ("ready", 0)
    assert f"Waits for DBOS at {file}, which does not answer" in turn.last_error
    assert "no such table" in turn.last_error


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("postgresql://kim:12/secret@db.example/sys", "db.example:5432/sys"),
        ("postgresql://kim:secret#1@db.example:6000/sys", "db.example:6000/sys"),
        ("postgresql:///sys?host=/run/postgresql", "/run/postgresql:5432/sys"),
        ("sqlite:////srv/sys.sqlite", "/srv/sys.sqlite"),
    ],
)
def test_where_the_database_is_holds_nothing_of_its_password(
    url: str, where: str
) -> None:
    """Whatever SQLAlchemy takes for one."""
    address = DBOSWorkflow(database=url, workflow="scripted", queue="hitl-tests")
    definition = AgentDefinition(name="told", target=lambda: address, kind="dbos")

    assert load(definition).engine.where == where  # type: ignore[attr-defined]

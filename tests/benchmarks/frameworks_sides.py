"""The ways to suspend and resume that are compared: how each is opened in a process.

`open` returns one cycle. Whatever can be made once for a process is made there: the
connection, the compiled graph, the engine. Each is set up as its own docs advise, and
nobody waits less for the disk than another.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Cycle = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a side keeps what it keeps: a database of its own."""

    url: str
    name: str
    reviewer: int
    """Key of the reviewer, where there are people."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the ways."""

    open: Callable[[Place], Cycle]
    does: str
    lacks: str


def langgraph_own(place: Place) -> Cycle:
    """LangGraph with its own saver: whoever resumes has to know the thread."""
    import psycopg
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.types import Command
    from psycopg.rows import dict_row

    from tests.benchmarks.frameworks_graph import asking, graph_of

    connection = psycopg.connect(
        place.url, autocommit=True, prepare_threshold=0, row_factory=dict_row
    )
    graph = graph_of(asking).compile(checkpointer=PostgresSaver(connection))
    options: Any = {"durability": "sync", "version": "v2"}

    def cycle() -> None:
        thread = {"configurable": {"thread_id": uuid.uuid4().hex}}
        paused = graph.invoke({"call": {}}, thread, **options)
        answers = {one.id: {"type": "approve"} for one in paused.interrupts}
        ended = graph.invoke(Command(resume=answers), thread, **options)
        assert ended.value["told"] == "sent"

    return cycle


def langgraph_ours(place: Place) -> Cycle:
    """The same graph, kept by our saver; its call is a tool that a person approves."""
    _site(place)
    from hitl_approvals import Approve, agent
    from tests.benchmarks.agent import bench_send
    from tests.benchmarks.frameworks_graph import graph_of

    agent("bench-graph", kind="langgraph", tools=[bench_send])(
        lambda tools: graph_of(bench_send)
    )
    return _decided("bench-graph", place.reviewer, Approve())


def langgraph_asking(place: Place) -> Cycle:
    """The same graph to the letter: its `interrupt()` is a question in our queue."""
    _site(place)
    from hitl_approvals import Respond, agent
    from tests.benchmarks.frameworks_graph import asking, graph_of

    agent("bench-asking", kind="langgraph")(lambda tools: graph_of(asking))
    return _decided("bench-asking", place.reviewer, Respond({"type": "approve"}))


def dbos(place: Place) -> Cycle:
    """DBOS: an event says what is waited for, a message decides."""
    from dbos import DBOS

    DBOS(
        config={
            "name": "bench",
            "system_database_url": place.url,
            "log_level": "ERROR",
            "application_version": "1",
            "executor_id": str(os.getpid()),
            "sys_db_pool_size": 5,
        }
    )

    @DBOS.step()
    def plan(prompt: str) -> dict[str, Any]:
        return {"name": "bench_send", "args": {"text": "hello"}}

    @DBOS.step()
    def send(text: str) -> str:
        return "sent"

    @DBOS.workflow()
    def turn(prompt: str) -> str:
        call = plan(prompt)
        DBOS.set_event("waiting", call)
        said = DBOS.recv("decision", timeout_seconds=600)
        return send(**call["args"]) if said["type"] == "approve" else "refused"

    DBOS.launch()

    def cycle() -> None:
        handle = DBOS.start_workflow(turn, "go")
        assert DBOS.get_event(handle.workflow_id, "waiting", timeout_seconds=60)
        DBOS.send(handle.workflow_id, {"type": "approve"}, topic="decision")
        assert handle.get_result() == "sent"

    return cycle


def migrate_dbos(url: str) -> None:
    """Make the engine's tables."""
    from dbos import run_dbos_database_migrations

    run_dbos_database_migrations(url)


def function_agent(place: Place) -> Cycle:
    """Our function agent, as in `make bench-cycle`."""
    _site(place)
    from tests.benchmarks.cycle import product_cycle

    return lambda: product_cycle(place.reviewer)


def _decided(agent: str, reviewer_id: int, decision: Any) -> Cycle:
    from django.contrib.auth.models import User

    from hitl_approvals import run_turn, services, start_turn
    from hitl_approvals.models import PendingInterrupt

    def cycle() -> None:
        reviewer = User(pk=reviewer_id, username="bench", is_active=True)
        turn = start_turn(agent, {"call": {}}, run=True)
        found = PendingInterrupt.objects.values_list("pk", flat=True).get(turn=turn.pk)
        services.decide(found, decision, by=reviewer, via="bench")
        assert run_turn(turn.pk) == "completed"

    return cycle


def _site(place: Place) -> None:
    """Set a site up in this process, on the run's own database."""
    import django
    from django.conf import settings

    django.setup()
    from django.db import connection

    settings.DATABASES["default"]["NAME"] = place.name
    connection.settings_dict["NAME"] = place.name
    from tests.benchmarks.cycle import PREPARED

    # The suite's databases do not wait for the disk; a site's do, and the others' here.
    # LangGraph's and DBOS's own connections prepare too.
    connection.settings_dict["OPTIONS"] |= {
        "options": "-c synchronous_commit=on",
        **PREPARED,
    }
    # Longer than any run here, so that no heartbeat connects.
    settings.HITL_APPROVALS = {"DISPATCHER": "worker", "LEASE": 3600}


SIDES = {
    "langgraph_own": Side(
        langgraph_own,
        "keeps the graph's state; whoever knows the thread resumes it",
        "no queue, no people and their rights, no edit, no record of who decided or of "
        "effects; two resumes at once run the call twice",
    ),
    "langgraph_ours": Side(
        langgraph_ours,
        "the same graph, its call a gated tool: queue, rights, events, ledger, one "
        "resume under a fence, and LangGraph's state in the site's own database",
        "no broker and no page in this figure",
    ),
    "langgraph_asking": Side(
        langgraph_asking,
        "the same graph to the letter: its interrupt() is a question in the queue",
        "nothing is gated, so no ledger; no broker and no page in this figure",
    ),
    "dbos": Side(
        dbos,
        "steps, the event that it waits and the message are durable; a dead worker's "
        "workflow is recovered",
        "no queue, no people and their rights, no edit; a step that died runs again",
    ),
    "function_agent": Side(
        function_agent,
        "queue, rights, events, ledger, recorded replies, one resume under a fence",
        "no framework's loop around it; no broker and no page in this figure",
    ),
}

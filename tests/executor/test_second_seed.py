"""Every sentence of the document that this executor grew from, as a test named after it.

The names are Python's: `interruptPayload` is `interrupt_payload`, `threadId` is
`thread_id`, and `new DurableExecutor({nodes})` is `DurableExecutor(nodes=...)`. Where we
do something else, the test says so and `docs/how-to/coming-from-durable-interrupts.md`
says why.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hitl_approvals import (
    Checkpoint,
    CheckpointStore,
    DjangoCheckpointStore,
    DurableExecutor,
    InterruptSuspended,
    MemoryCheckpointStore,
    Respond,
    services,
)
from hitl_approvals.exceptions import (
    AlreadyDecided,
    HitlConfigurationError,
)
from hitl_approvals.models import AgentTurn, PendingInterrupt, TurnStep
from hitl_approvals.registry import registry
from hitl_approvals.testing import run_owed

pytestmark = pytest.mark.django_db

STORES = [MemoryCheckpointStore, DjangoCheckpointStore]


@pytest.fixture(params=STORES, ids=["memory", "django"])
def store(request: pytest.FixtureRequest) -> CheckpointStore:
    made: CheckpointStore = request.param()
    return made


# Quick start


def ask_approval(input, ctx):  # noqa: A002  the document's word
    value = ctx.interrupt({"question": "Approve this transfer?"})
    return {"input": input, "approved": value}


def execute(data):
    return {**data, "done": True}


def transfer(store: Any) -> DurableExecutor:
    registry.agents.pop("transfer", None)
    return DurableExecutor(
        nodes=[("ask", ask_approval), ("execute", execute)],
        store=store,
        name="transfer",
    )


def test_quick_start(store):
    exec_ = transfer(store)

    # Run — pauses at the interrupt
    r1 = exec_.run({"amount": 500})
    assert r1.interrupted is True
    assert r1.interrupt_payload == {"question": "Approve this transfer?"}

    # Resume — passes a value back into the paused node
    r2 = exec_.resume(r1.thread_id, {"ok": True})
    assert r2.output == {
        "input": {"amount": 500},
        "approved": {"ok": True},
        "done": True,
    }


def test_quick_start_as_it_stands_needs_a_name_or_a_store():
    """There the default store is in memory; here it is the database."""
    nodes = [("ask", ask_approval), ("execute", execute)]

    with pytest.raises(HitlConfigurationError, match="MemoryCheckpointStore"):
        DurableExecutor(nodes=nodes)

    assert (
        DurableExecutor(nodes=nodes, store=MemoryCheckpointStore()).run(1).interrupted
    )


# "lets any graph node pause execution via interrupt(), persist a checkpoint, and resume
# later when a human (or external system) provides a value"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_any_node_pauses_persists_a_checkpoint_and_resumes_later(store, place):
    nodes = [(f"n{number}", lambda given: given) for number in range(3)]
    nodes[place] = ("ask", lambda given, ctx: [given, ctx.interrupt("yes?")])
    registry.agents.pop("any", None)
    graph = DurableExecutor(nodes, store=store, name="any")

    paused = graph.run("in")
    assert [one.node for one in graph.list_checkpoints(paused.thread_id)][-1] == "ask"

    assert graph.resume(paused.thread_id, "yes").output == ["in", "yes"]


def test_a_human_or_an_external_system_provides_the_value():
    graph = transfer(DjangoCheckpointStore())
    paused = graph.run({"amount": 500})
    waiting = PendingInterrupt.objects.get(status="pending")

    services.decide(waiting.pk, Respond({"ok": True}), by=None, via="bank")
    assert run_owed() == ["completed"]

    assert graph.result(paused.thread_id).output["approved"] == {"ok": True}


# "Fork-from-checkpoint clones any saved state into a new thread"


def test_fork_clones_any_saved_state_into_a_new_thread(store):
    graph = transfer(store)
    origin = graph.run({"amount": 500}).thread_id
    graph.resume(origin, {"ok": True})

    for point in graph.list_checkpoints(origin):
        fork = graph.fork(origin, point.id)
        cloned = graph.list_checkpoints(fork)[-1]
        assert fork != origin
        assert (cloned.node, cloned.kind) == (point.node, point.kind)
        assert cloned.state == point.state
        assert cloned.history == point.history
        assert cloned.pending_input == point.pending_input
        assert cloned.interrupt_payload == point.interrupt_payload


# How it works


def test_1_interrupt_raises_a_signal_that_the_executor_catches(store):
    """`InterruptSignal` is `InterruptSuspended` here; the caller never sees it."""
    caught = []

    def node(given, ctx):
        try:
            return ctx.interrupt("yes?")
        except InterruptSuspended as signal:
            caught.append(signal)
            raise

    registry.agents.pop("signal", None)
    graph = DurableExecutor([("ask", node)], store=store, name="signal")

    paused = graph.run(None)

    assert paused.interrupted
    assert len(caught) == 1
    assert graph.resume(paused.thread_id, 1).output == 1
    assert len(caught) == 1


def test_2_the_executor_persists_state_history_and_pending_input(store):
    registry.agents.pop("persist", None)
    graph = DurableExecutor(
        [("first", execute), ("ask", ask_approval)], store=store, name="persist"
    )

    thread = graph.run({"amount": 500}).thread_id

    point = store.load(thread)
    first = {"amount": 500, "done": True}
    assert point.state == {"first": first}
    assert point.history == [{"node": "first", "output": first}]
    assert point.pending_input == first


def test_2_on_django_the_checkpoint_is_the_rows():
    graph = transfer(DjangoCheckpointStore())
    thread = graph.run({"amount": 500}).thread_id
    graph.resume(thread, {"ok": True})

    turn = AgentTurn.objects.get(thread_id=thread)
    row = PendingInterrupt.objects.get(turn=turn)
    steps = TurnStep.objects.filter(turn=turn).order_by("position")
    assert [one.id for one in graph.list_checkpoints(thread)] == [
        str(row.pk),
        *(str(step.pk) for step in steps),
    ]


def test_3_resume_re_runs_from_the_interrupted_node_and_returns_the_value(store):
    ran = []

    def before(given):
        ran.append("before")
        return given

    def asking(given, ctx):
        ran.append("ask")
        return ctx.interrupt("yes?")

    registry.agents.pop("rerun", None)
    graph = DurableExecutor(
        [("before", before), ("ask", asking)], store=store, name="rerun"
    )

    done = graph.resume(graph.run(1).thread_id, "the value")

    assert done.output == "the value"
    assert ran == ["before", "ask", "ask"]


def test_4_execution_continues_past_the_pause_with_no_side_effect_replay(store):
    """Of finished nodes nothing is replayed. A node restarts from its top, so what it
    does before its question stands in `ctx.once`, which is not replayed either."""
    effects = []

    def before(given):
        effects.append("before")
        return given

    def asking(given, ctx):
        ctx.once("charge", lambda: effects.append("charge"))
        return ctx.interrupt("yes?")

    def after(given):
        effects.append("after")
        return given

    registry.agents.pop("effects", None)
    graph = DurableExecutor(
        [("before", before), ("ask", asking), ("after", after)],
        store=store,
        name="effects",
    )
    thread = graph.run(1).thread_id

    graph.resume(thread, "yes")
    with pytest.raises(AlreadyDecided):
        graph.resume(thread, "yes")

    assert effects == ["before", "charge", "after"]


# Fork-from-checkpoint


def test_fork_and_resume_explore_a_different_branch(store):
    graph = transfer(store)
    original_thread = graph.run({"amount": 500}).thread_id
    graph.resume(original_thread, {"ok": True})

    forked_thread = graph.fork(original_thread)
    explored = graph.resume(forked_thread, {"ok": False})

    assert explored.output["approved"] == {"ok": False}
    assert graph.result(original_thread).output["approved"] == {"ok": True}


def test_on_django_origin_and_fork_know_each_other():
    graph = transfer(DjangoCheckpointStore())
    origin = graph.run({"amount": 500}).thread_id

    fork = graph.fork(origin)

    turn = AgentTurn.objects.get(thread_id=fork)
    assert turn.parent.thread_id == origin
    assert [one.thread_id for one in turn.parent.forks.all()] == [fork]


# Pluggable CheckpointStore


def test_the_in_memory_store_is_suitable_for_development():
    """There it is the default; here it is asked for, because it forgets."""
    graph = transfer(MemoryCheckpointStore())
    thread = graph.run(1).thread_id

    assert graph.resume(thread, 2).output["approved"] == 2
    assert AgentTurn.objects.count() == 0


class Notebook:
    """A store of one's own: the five methods, nothing else."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def save(self, cp: Checkpoint) -> None:
        from hitl_approvals.exceptions import CheckpointConflict

        if self.load_by_id(cp.id) is not None:
            raise CheckpointConflict
        self.rows.append(cp.to_json())

    def load(self, thread_id: str) -> Checkpoint | None:
        return (self.list(thread_id) or [None])[-1]

    def load_by_id(self, checkpoint_id: str) -> Checkpoint | None:
        found = [row for row in self.rows if row["id"] == checkpoint_id]
        return Checkpoint.from_json(found[0]) if found else None

    def list(self, thread_id: str) -> Any:
        own = [row for row in self.rows if row["thread_id"] == thread_id]
        return [
            Checkpoint.from_json(row)
            for row in sorted(own, key=lambda row: row["position"])
        ]

    def delete(self, thread_id: str) -> None:
        self.rows = [row for row in self.rows if row["thread_id"] != thread_id]


def test_for_production_implement_the_interface():
    store = Notebook()
    assert isinstance(store, CheckpointStore)

    graph = transfer(store)
    thread = graph.run(1).thread_id

    assert graph.resume(thread, "yes").output["approved"] == "yes"
    assert graph.resume(graph.fork(thread), "no").output["approved"] == "no"
    store.delete(thread)
    assert store.load(thread) is None


@pytest.mark.parametrize("name", ["save", "load", "load_by_id", "list", "delete"])
def test_the_interface_has_these_methods(store, name):
    assert callable(getattr(CheckpointStore, name))
    assert callable(getattr(store, name))


def test_a_relational_store_is_there_already(db):
    """“A SQLite or Postgres implementation follows the same pattern”: it is the default."""
    registry.agents.pop("default", None)
    graph = DurableExecutor([("ask", ask_approval)], name="default")

    thread = graph.run(1).thread_id

    assert DjangoCheckpointStore().load(thread).node == "ask"


# Checkpoint shape


def test_checkpoint_shape(store):
    graph = transfer(store)
    before = datetime.now(UTC)
    paused = graph.run({"amount": 500})

    (point,) = graph.list_checkpoints(paused.thread_id)

    assert point.id == paused.interrupt_id
    assert point.thread_id == paused.thread_id
    assert point.node == "ask"  # which node paused
    assert point.interrupt_payload == {"question": "Approve this transfer?"}
    assert point.state == {}  # accumulated per-node outputs
    assert point.history == []
    assert point.pending_input == {"amount": 500}  # flowing into the paused node
    assert abs((point.created_at - before).total_seconds()) < 60


# Related pages


def test_graph_engine_event_sourced_replayable_execution():
    """Every pause and answer is an event of the append-only trail."""
    from hitl_approvals.models import InterruptEvent

    graph = transfer(DjangoCheckpointStore())
    thread = graph.run({"amount": 500}).thread_id
    graph.resume(thread, {"ok": True})

    events = InterruptEvent.objects.order_by("at", "sequence")
    assert sorted(one.type for one in events) == [
        "raised",
        "resolved",
        "responded",
        "turn_completed",
    ]

"""What every checkpoint store has to show of a thread, and let be forked."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from hitl_approvals.exceptions import InterruptNotFound, TurnNotFound
from hitl_approvals.stores.checkpoints import NODE, PAUSE, Checkpoint, CheckpointStore
from hitl_approvals.testing.checkpoint_graphs import (
    ask_approval,
    counted,
    execute,
    noted,
)
from hitl_approvals.testing.checkpoint_store_harness import CheckpointStoreHarness


class CheckpointStoreForks(CheckpointStoreHarness):
    """Checkpoints as they are listed, and threads that begin at one of them."""

    # checkpoints

    def test_every_pause_and_every_finished_node_is_a_checkpoint(
        self, store: CheckpointStore
    ) -> None:
        graph = self.graph(
            store, ("before", execute), ("ask", ask_approval), ("after", execute)
        )
        thread = graph.run({"amount": 5}).thread_id
        graph.resume(thread, True)

        points = graph.list_checkpoints(thread)

        before = {"amount": 5, "done": True}
        asked = {"input": before, "approved": True}
        assert [(one.kind, one.node) for one in points] == [
            (NODE, "before"),
            (PAUSE, "ask"),
            (NODE, "ask"),
            (NODE, "after"),
        ]
        pause = points[1]
        assert pause.interrupted
        assert pause.interrupt_payload == {"question": "Approve this transfer?"}
        assert pause.state == {"before": before}
        assert pause.history == [{"node": "before", "output": before}]
        assert pause.pending_input == before
        assert pause.thread_id == thread
        assert pause.created_at.tzinfo is not None
        assert not points[2].interrupted
        assert points[2].state == {"before": before, "ask": asked}
        assert points[2].pending_input == asked
        assert [one.position for one in points] == sorted(
            {one.position for one in points}
        )

    def test_checkpoints_are_found_by_thread_and_by_id(
        self, store: CheckpointStore
    ) -> None:
        graph = self.graph(store, ("ask", ask_approval))
        paused = graph.run(1)

        newest = store.load(paused.thread_id)

        assert newest is not None
        assert newest.id == paused.interrupt_id
        assert store.load_by_id(newest.id) == newest
        assert store.list(paused.thread_id)[-1] == newest
        assert graph.list_checkpoints(paused.thread_id) == [newest]

    def test_what_is_unknown_is_nothing(self, store: CheckpointStore) -> None:
        graph = self.graph(store, ("ask", ask_approval))
        for unknown in ("never", "", str(uuid4())):
            assert store.load(unknown) is None
            assert store.load_by_id(unknown) is None
            assert store.list(unknown) == []
            store.delete(unknown)
            assert graph.list_checkpoints(unknown) == []
            with pytest.raises(TurnNotFound):
                graph.resume(unknown, "yes")
            with pytest.raises(TurnNotFound):
                graph.fork(unknown)

    def test_a_checkpoint_goes_through_json_and_cannot_be_changed(
        self, store: CheckpointStore
    ) -> None:
        graph = self.graph(store, ("before", execute), ("ask", ask_approval))
        thread = graph.run({"amount": [1]}).thread_id

        for one in store.list(thread):
            text = json.dumps(one.to_json())
            assert Checkpoint.from_json(json.loads(text)) == one
            with pytest.raises(AttributeError):
                one.node = "other"  # type: ignore[misc]
        point = graph.list_checkpoints(thread)[0]
        with pytest.raises(TypeError):
            point.state["before"]["amount"].append(2)
        with pytest.raises(TypeError):
            point.history[0]["output"] = None  # type: ignore[index]

    def test_one_store_keeps_threads_apart(self, store: CheckpointStore) -> None:
        graph = self.graph(store, ("ask", ask_approval))
        threads = [
            graph.run(number, f"t-{uuid4().hex}-%_*[?").thread_id for number in (1, 2)
        ]

        done = [graph.resume(thread, "yes").output["input"] for thread in threads]

        assert done == [1, 2]

    # fork

    def test_a_fork_of_a_finished_thread_is_pending_again(
        self, store: CheckpointStore
    ) -> None:
        graph = self.graph(store, ("ask", ask_approval), ("execute", execute))
        paused = graph.run({"amount": 500})
        done = graph.resume(paused.thread_id, {"ok": True})

        fork = graph.fork(paused.thread_id)

        assert fork != paused.thread_id
        waiting = graph.result(fork)
        assert waiting.interrupted
        assert waiting.interrupt_payload == paused.interrupt_payload
        assert graph.resume(fork, {"ok": False}).output["approved"] == {"ok": False}
        assert graph.result(paused.thread_id) == done

    def test_a_fork_of_a_waiting_thread_leaves_it_waiting(
        self, store: CheckpointStore
    ) -> None:
        graph = self.graph(store, ("ask", ask_approval))
        paused = graph.run(1)

        fork = graph.fork(paused.thread_id)

        assert graph.resume(fork, "fork").output["approved"] == "fork"
        assert graph.resume(paused.thread_id, "origin").output["approved"] == "origin"

    def test_a_fork_repeats_no_recorded_effect(
        self, store: CheckpointStore, tmp_path: Path
    ) -> None:
        graph = counted(store)
        effects = tmp_path / "effects"
        thread = graph.run({"effects": str(effects)}).thread_id
        graph.resume(thread, 1)
        graph.resume(thread, 2)
        before = noted(effects)

        fork = graph.fork(thread)

        assert noted(effects) == before
        assert graph.result(fork).interrupt_payload == "second?"
        assert graph.resume(fork, "other").output == [1, "other"]
        assert noted(effects)[len(before) :] == ["ask", "finish"]
        assert noted(effects).count("fee") == 1

    def test_a_fork_begins_at_any_checkpoint(
        self, store: CheckpointStore, tmp_path: Path
    ) -> None:
        graph = counted(store)
        effects = tmp_path / "effects"
        thread = graph.run({"effects": str(effects)}).thread_id
        graph.resume(thread, 1)
        graph.resume(thread, 2)
        points = graph.list_checkpoints(thread)
        assert [(one.kind, one.node) for one in points] == [
            (NODE, "prepare"),
            (PAUSE, "ask"),
            (PAUSE, "ask"),
            (NODE, "ask"),
            (NODE, "finish"),
        ]
        prepared, first, _second, asked, finished = points

        at_first = graph.fork(thread, first.id)
        assert graph.result(at_first).interrupt_payload == "first?"
        graph.resume(at_first, "a")
        assert graph.resume(at_first, "b").output == ["a", "b"]
        after_prepare = graph.fork(thread, prepared.id)
        assert graph.resume(after_prepare).interrupt_payload == "first?"
        assert graph.resume(graph.fork(thread, asked.id)).output == [1, 2]
        assert graph.resume(graph.fork(thread, finished.id)).output == [1, 2]

        assert noted(effects).count("prepare") == 1
        with pytest.raises(InterruptNotFound):
            graph.fork(thread, str(uuid4()))

    def test_a_fork_can_be_forked(self, store: CheckpointStore) -> None:
        graph = self.graph(store, ("before", execute), ("ask", ask_approval))
        thread = graph.run({}).thread_id

        grandchild = graph.fork(graph.fork(thread))

        assert graph.resume(grandchild, 1).output["approved"] == 1
        assert [one.node for one in graph.list_checkpoints(grandchild)] == [
            "before",
            "ask",
            "ask",
        ]

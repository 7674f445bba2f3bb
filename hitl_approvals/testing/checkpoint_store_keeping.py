"""What a checkpoint store has to keep: from writers that meet, and over processes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from hitl_approvals.exceptions import (
    AlreadyDecided,
    CheckpointConflict,
    InterruptCancelled,
    TurnNotFound,
)
from hitl_approvals.stores.checkpoints import Checkpoint, CheckpointStore
from hitl_approvals.testing.checkpoint_graphs import ask_approval, counted, noted
from hitl_approvals.testing.checkpoint_store_harness import (
    THREADS,
    CheckpointStoreHarness,
    errors,
)


def a_checkpoint(**changes: Any) -> Checkpoint:
    """Return a checkpoint of a thread of its own."""
    values: dict[str, Any] = {
        "id": uuid4().hex,
        "thread_id": f"thread-{uuid4().hex}",
        "node": "ask",
        "interrupt_payload": {"question": "May I?"},
        "state": {"before": [1, None, ""]},
        "history": [{"node": "before", "output": [1, None, ""]}],
        "pending_input": [1, None, ""],
        "position": 1,
        "record": {"nodes": ["before", "ask"]},
    }
    return Checkpoint(**{**values, **changes})


class CheckpointStoreKeeping(CheckpointStoreHarness):
    """Saves, deletions, and processes that end."""

    # save and delete

    def test_what_is_saved_is_loaded_as_it_was(self, store: CheckpointStore) -> None:
        point = a_checkpoint()
        if self._is_refused(store, point):
            return
        store.save(point)

        assert store.load(point.thread_id) == point
        assert store.load_by_id(point.id) == point
        assert store.list(point.thread_id) == [point]

    def test_an_id_that_is_there_is_refused(self, store: CheckpointStore) -> None:
        point = a_checkpoint()
        if self._is_refused(store, point):
            return
        store.save(point)

        for other in (point, point.with_changes(node="other")):
            with pytest.raises(CheckpointConflict):
                store.save(other)

        assert store.load_by_id(point.id) == point

    def test_of_saves_under_one_id_one_wins(self, store: CheckpointStore) -> None:
        for _round in range(5):
            point = a_checkpoint()
            if self._is_refused(store, point):
                return
            saves = [
                partial(store.save, point.with_changes(pending_input=number))
                for number in range(THREADS)
            ]

            results = self.together(*saves)

            assert len(errors(results)) == THREADS - 1
            assert {type(one) for one in errors(results)} == {CheckpointConflict}
            kept = store.load_by_id(point.id)
            assert kept is not None
            assert results[kept.pending_input] is None

    def test_the_newest_is_the_one_with_the_last_position(
        self, store: CheckpointStore
    ) -> None:
        point = a_checkpoint()
        if self._is_refused(store, point):
            return
        # Made at the same moment, and saved out of order.
        for position in (2, 1, 3, 10):
            store.save(
                point.with_changes(id=f"{point.id}{position}", position=position)
            )

        assert [one.position for one in store.list(point.thread_id)] == [1, 2, 3, 10]
        newest = store.load(point.thread_id)
        assert newest is not None
        assert newest.position == 10

    def test_a_deleted_thread_is_over(self, store: CheckpointStore) -> None:
        graph = self.graph(store, ("ask", ask_approval))
        paused, other = graph.run(1), graph.run(2)

        store.delete(paused.thread_id)
        store.delete(paused.thread_id)

        gone = InterruptCancelled if self.derived else TurnNotFound
        with pytest.raises(gone):
            graph.resume(paused.thread_id, "yes")
        # What an engine wrote stays on record.
        assert len(store.list(paused.thread_id)) == int(self.derived)
        assert graph.resume(other.thread_id, "yes").status == "completed"

    def _is_refused(self, store: CheckpointStore, point: Checkpoint) -> bool:
        """Tell whether the store takes nothing itself, after seeing that it says so."""
        if self.derived:
            with pytest.raises(CheckpointConflict, match="nothing was saved"):
                store.save(point)
            assert store.load(point.thread_id) is None
        return self.derived

    # processes

    def test_a_new_object_goes_on_where_the_old_one_stopped(
        self, store: CheckpointStore
    ) -> None:
        name = f"g-{uuid4().hex[:8]}"
        thread = self.graph(store, ("ask", ask_approval), name=name).run(1).thread_id
        self.forget(name)
        other = self.make_store()

        if not self.outlives_its_process:
            assert other.load(thread) is None
            return
        done = self.graph(other, ("ask", ask_approval), name=name).resume(thread, "yes")
        assert done.output == {"input": 1, "approved": "yes"}

    def test_another_process_goes_on(
        self, store: CheckpointStore, tmp_path: Path
    ) -> None:
        if not self.outlives_its_process:
            assert self.make_store().list("any") == []
            return
        effects = tmp_path / "effects"
        thread = counted(store).run({"effects": str(effects)}).thread_id

        printed = self.python(
            "from hitl_approvals.testing.checkpoint_graphs import counted\n"
            f"print(counted(store).resume({thread!r}, 0).interrupt_payload)"
        )

        assert printed == "second?"
        assert counted(store).resume(thread, None).output == [0, None]
        assert noted(effects) == ["prepare", "ask", "fee", "ask", "ask", "finish"]

    def test_a_process_that_is_killed_between_two_nodes_loses_nothing(
        self, store: CheckpointStore, tmp_path: Path
    ) -> None:
        if not self.outlives_its_process:
            assert self.make_store().list("any") == []
            return
        effects = tmp_path / "effects"
        graph = counted(store)
        thread = graph.run({"effects": str(effects), "die": True}).thread_id
        graph.resume(thread, 1)

        died = self.process(
            "from hitl_approvals.testing.checkpoint_graphs import counted\n"
            f"counted(store).resume({thread!r}, 2)"
        )
        assert died.returncode < 0, died.stderr
        self.after_a_crash()
        with pytest.raises(AlreadyDecided):
            graph.resume(thread, "again")
        done = graph.resume(thread)

        assert done.output == [1, 2]
        told = noted(effects)
        assert (told.count("prepare"), told.count("fee")) == (1, 1)
        assert told == ["prepare", "ask", "fee", "ask", "ask", "finish", "finish"]

"""What every checkpoint store has to do, as a pytest class to inherit from.

class TestMyStore(CheckpointStoreContract):
    def make_store(self):
        return MyStore(...)
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from hitl_approvals.decisions import Reject, Respond
from hitl_approvals.exceptions import (
    AlreadyDecided,
    ApprovalRejected,
    CheckpointConflict,
    InterruptCancelled,
    InterruptNotFound,
    PayloadRejected,
    TransitionNotAllowed,
    TurnNotFound,
)
from hitl_approvals.stores.checkpoints import NODE, PAUSE, Checkpoint, CheckpointStore
from hitl_approvals.testing.checkpoint_graphs import counted, noted
from hitl_approvals.testing.checkpoint_store_harness import (
    THREADS,
    CheckpointStoreHarness,
    errors,
)


def ask(given: Any, ctx: Any) -> Any:
    value = ctx.interrupt({"question": "Approve this transfer?"})
    return {"input": given, "approved": value}


def execute(data: Any) -> Any:
    return {**data, "done": True}


def ask_twice(given: Any, ctx: Any) -> Any:
    return [ctx.interrupt("first?"), ctx.interrupt("second?")]


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


class CheckpointStoreContract(CheckpointStoreHarness):
    """Tests of one store. Override `make_store`; the rest as far as the store differs."""

    # run and resume

    def test_it_pauses_and_goes_on(self, store: CheckpointStore) -> None:
        transfer = self.graph(store, ("ask", ask), ("execute", execute))

        paused = transfer.run({"amount": 500})
        done = transfer.resume(paused.thread_id, {"ok": True})

        assert (paused.interrupted, paused.status) == (True, "suspended")
        assert paused.interrupt_payload == {"question": "Approve this transfer?"}
        assert (done.interrupted, done.status) == (False, "completed")
        assert done.output == {
            "input": {"amount": 500},
            "approved": {"ok": True},
            "done": True,
        }
        assert transfer.result(paused.thread_id) == done

    @pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
    def test_an_empty_answer_is_an_answer(
        self, store: CheckpointStore, value: Any
    ) -> None:
        graph = self.graph(store, ("ask", ask))
        thread = graph.run(1).thread_id

        done = graph.resume(thread, value)

        assert done.output == {"input": 1, "approved": value}

    @pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
    def test_an_empty_output_is_recorded(
        self, store: CheckpointStore, value: Any
    ) -> None:
        runs: list[Any] = []

        def empty(given: Any) -> Any:
            runs.append(given)
            return value

        graph = self.graph(store, ("empty", empty), ("ask", ask))

        done = graph.resume(graph.run("x").thread_id, "yes")

        assert done.output == {"input": value, "approved": "yes"}
        assert runs == ["x"]

    def test_each_question_of_a_node_gets_its_own_answer(
        self, store: CheckpointStore
    ) -> None:
        graph = self.graph(store, ("ask", ask_twice))

        first = graph.run(None)
        second = graph.resume(first.thread_id, None)
        done = graph.resume(first.thread_id, 2)

        assert [first.interrupt_payload, second.interrupt_payload] == [
            "first?",
            "second?",
        ]
        assert done.output == [None, 2]

    def test_the_same_question_in_two_nodes_is_two_questions(
        self, store: CheckpointStore
    ) -> None:
        def again(given: Any, ctx: Any) -> Any:
            return [given, ctx.interrupt("first?", key="k")]

        def once(given: Any, ctx: Any) -> Any:
            return ctx.interrupt("first?", key="k")

        graph = self.graph(store, ("one", once), ("two", again))
        thread = graph.run(None).thread_id

        graph.resume(thread, 1)

        assert graph.resume(thread, 2).output == [1, 2]

    def test_keyed_questions_find_their_answers_in_any_order(
        self, store: CheckpointStore
    ) -> None:
        order = [["a", "b"], ["b", "a"], ["b", "a"]]

        def shuffled(given: Any, ctx: Any) -> Any:
            return {name: ctx.interrupt(name, key=name) for name in order.pop(0)}

        graph = self.graph(store, ("ask", shuffled))
        thread = graph.run(None).thread_id
        graph.resume(thread, "for a")

        assert graph.resume(thread, "for b").output == {"a": "for a", "b": "for b"}

    def test_another_question_at_the_same_place_is_a_stop_that_shows_both(
        self, store: CheckpointStore
    ) -> None:
        wordings = ["old?", "new?", "new?"]

        def fickle(given: Any, ctx: Any) -> Any:
            return ctx.interrupt(wordings.pop(0))

        graph = self.graph(store, ("ask", fickle))
        thread = graph.run(None).thread_id

        told = self.stopped(lambda: graph.resume(thread, "yes"))

        assert "'old?'" in told
        assert "'new?'" in told
        assert "key=" in told

    def test_a_node_that_swallows_the_pause_pauses_all_the_same(
        self, store: CheckpointStore
    ) -> None:
        def stubborn(given: Any, ctx: Any) -> Any:
            try:
                return ctx.interrupt("may I?")
            except Exception:  # noqa: BLE001  that is what is tested
                return "took it"

        graph = self.graph(store, ("ask", stubborn))
        paused = graph.run(None)

        assert paused.interrupted
        assert graph.resume(paused.thread_id, "yes").output == "yes"

    def test_a_refusal_is_raised_in_the_node(self, store: CheckpointStore) -> None:
        def polite(given: Any, ctx: Any) -> Any:
            try:
                return ctx.interrupt("may I?")
            except ApprovalRejected as refusal:
                return f"refused: {refusal.reason}"

        graph = self.graph(store, ("ask", polite))

        done = graph.resume(graph.run(None).thread_id, Reject("not today"))

        assert done.output == "refused: not today"

    def test_an_answer_has_to_fit_its_schema(self, store: CheckpointStore) -> None:
        def asking(given: Any, ctx: Any) -> Any:
            return ctx.interrupt("how much?", response_schema={"type": "integer"})

        graph = self.graph(store, ("ask", asking))
        thread = graph.run(None).thread_id

        with pytest.raises(PayloadRejected, match="does not fit"):
            graph.resume(thread, "ten")

        assert graph.result(thread).interrupted
        assert graph.resume(thread, Respond(10)).output == 10

    def test_a_second_resume_is_told_that_it_was_answered_and_when(
        self, store: CheckpointStore
    ) -> None:
        graph = self.graph(store, ("ask", ask))
        paused = graph.run(1)
        done = graph.resume(paused.thread_id, "first")

        with pytest.raises(AlreadyDecided) as told:
            graph.resume(paused.thread_id, "second")

        assert told.value.decided_at is not None
        assert told.value.decision == "respond"
        assert graph.result(paused.thread_id) == done

    def test_an_answer_meant_for_one_question_never_answers_the_next(
        self, store: CheckpointStore
    ) -> None:
        graph = self.graph(store, ("ask", ask_twice))
        first = graph.run(None)
        second = graph.resume(first.thread_id, 1, interrupt_id=first.interrupt_id)

        with pytest.raises(AlreadyDecided):
            graph.resume(first.thread_id, "again", interrupt_id=first.interrupt_id)
        with pytest.raises(InterruptNotFound):
            graph.resume(first.thread_id, "again", interrupt_id=str(uuid4()))

        assert graph.result(first.thread_id) == second

    def test_a_resume_without_an_answer_is_refused_while_one_is_missing(
        self, store: CheckpointStore
    ) -> None:
        graph = self.graph(store, ("ask", ask))
        thread = graph.run(1).thread_id

        with pytest.raises(TypeError, match="None"):
            graph.resume(thread)

        assert graph.result(thread).interrupted

    def test_a_thread_that_never_asked_says_so(self, store: CheckpointStore) -> None:
        graph = self.graph(store, ("execute", execute))
        done = graph.run({})

        with pytest.raises(TransitionNotAllowed, match="Nothing waits"):
            graph.resume(done.thread_id, "yes")

        assert graph.resume(done.thread_id) == done

    def test_of_resumes_that_meet_one_wins(self, store: CheckpointStore) -> None:
        for _round in range(5):
            ran: list[Any] = []

            def effect(given: Any, *, ran: list[Any] = ran) -> Any:
                ran.append(given["approved"])
                return given["approved"]

            graph = self.graph(store, ("ask", ask), ("effect", effect))
            paused = graph.run(1)

            results = self.together(
                *(
                    partial(
                        graph.resume,
                        paused.thread_id,
                        number,
                        interrupt_id=paused.interrupt_id,
                    )
                    for number in range(THREADS)
                )
            )

            losers = errors(results)
            assert [type(one) for one in losers] == [AlreadyDecided] * (THREADS - 1)
            assert len(ran) == 1
            done = graph.result(paused.thread_id)
            assert (done.status, [done.output]) == ("completed", ran)

    # the graph changes under a paused thread

    @pytest.mark.parametrize(
        "nodes",
        [
            [("before", execute), ("asks", ask), ("after", execute)],
            [("before", execute), ("after", execute)],
            [("ask", ask), ("before", execute), ("after", execute)],
        ],
        ids=["renamed", "removed", "moved"],
    )
    def test_a_changed_node_is_a_visible_stop_that_names_it(
        self, store: CheckpointStore, nodes: list[Any]
    ) -> None:
        name = f"g-{uuid4().hex[:8]}"
        old = [("before", execute), ("ask", ask), ("after", execute)]
        thread = self.graph(store, *old, name=name).run({}).thread_id
        self._forget(name)
        graph = self.graph(store, *nodes, name=name)

        told = self.stopped(lambda: graph.resume(thread, "yes"))

        first_gone = "before" if nodes[0][0] != "before" else "ask"
        assert f"Node `{first_gone}`" in told

    def test_a_node_may_be_added_behind(self, store: CheckpointStore) -> None:
        name = f"g-{uuid4().hex[:8]}"
        thread = self.graph(store, ("ask", ask), name=name).run(1).thread_id
        self._forget(name)
        graph = self.graph(store, ("ask", ask), ("execute", execute), name=name)

        assert graph.resume(thread, "yes").output["done"] is True

    # state

    def test_a_node_sees_what_the_nodes_before_returned(
        self, store: CheckpointStore
    ) -> None:
        seen: list[Any] = []

        def look(given: Any, ctx: Any) -> Any:
            seen.append({**ctx.state})
            with pytest.raises(TypeError):
                ctx.state["ask"] = "forged"
            with pytest.raises(TypeError):
                ctx.state["ask"]["approved"] = "forged"
            given["approved"] = "changed"
            return ctx.node

        graph = self.graph(store, ("ask", ask), ("look", look), ("last", look_again))
        thread = graph.run(1).thread_id

        done = graph.resume(thread, "yes")

        approved = {"input": 1, "approved": "yes"}
        assert seen == [{"ask": approved}]
        assert done.output == {"ask": approved, "look": "look"}

    def test_async_nodes_and_the_async_verbs(self, store: CheckpointStore) -> None:
        from asgiref.sync import async_to_sync

        async def aask(given: Any, ctx: Any) -> Any:
            paid = await ctx.once("pay", lambda: "paid")
            return [given, paid, await ctx.interrupt("yes?"), dict(ctx.state)]

        async def alone(given: Any) -> Any:
            return given

        graph = self.graph(store, ("alone", alone), ("ask", aask))

        async def drive() -> Any:
            paused = await graph.arun("in")
            done = await graph.aresume(paused.thread_id, 0)
            assert await graph.aresult(paused.thread_id) == done
            fork = await graph.afork(paused.thread_id)
            points = await graph.alist_checkpoints(paused.thread_id)
            return done, await graph.aresume(fork, 1), points

        done, forked, points = async_to_sync(drive)()

        assert done.output == ["in", "paid", 0, {"alone": "in"}]
        assert forked.output == ["in", "paid", 1, {"alone": "in"}]
        assert [one.kind for one in points] == [NODE, PAUSE, NODE]

    # checkpoints

    def test_every_pause_and_every_finished_node_is_a_checkpoint(
        self, store: CheckpointStore
    ) -> None:
        graph = self.graph(store, ("before", execute), ("ask", ask), ("after", execute))
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
        graph = self.graph(store, ("ask", ask))
        paused = graph.run(1)

        newest = store.load(paused.thread_id)

        assert newest is not None
        assert newest.id == paused.interrupt_id
        assert store.load_by_id(newest.id) == newest
        assert store.list(paused.thread_id)[-1] == newest
        assert graph.list_checkpoints(paused.thread_id) == [newest]

    def test_what_is_unknown_is_nothing(self, store: CheckpointStore) -> None:
        graph = self.graph(store, ("ask", ask))
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
        import json

        graph = self.graph(store, ("before", execute), ("ask", ask))
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
        graph = self.graph(store, ("ask", ask))
        threads = [
            graph.run(number, f"t-{uuid4().hex}-%_*[?").thread_id for number in (1, 2)
        ]

        done = [graph.resume(thread, "yes").output["input"] for thread in threads]

        assert done == [1, 2]

    # fork

    def test_a_fork_of_a_finished_thread_is_pending_again(
        self, store: CheckpointStore
    ) -> None:
        graph = self.graph(store, ("ask", ask), ("execute", execute))
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
        graph = self.graph(store, ("ask", ask))
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
        graph = self.graph(store, ("before", execute), ("ask", ask))
        thread = graph.run({}).thread_id

        grandchild = graph.fork(graph.fork(thread))

        assert graph.resume(grandchild, 1).output["approved"] == 1
        assert [one.node for one in graph.list_checkpoints(grandchild)] == [
            "before",
            "ask",
            "ask",
        ]

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
        graph = self.graph(store, ("ask", ask))
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

    def _forget(self, name: str) -> None:
        from hitl_approvals.registry import registry

        registry.agents.pop(name, None)

    # processes

    def test_a_new_object_goes_on_where_the_old_one_stopped(
        self, store: CheckpointStore
    ) -> None:
        name = f"g-{uuid4().hex[:8]}"
        thread = self.graph(store, ("ask", ask), name=name).run(1).thread_id
        self._forget(name)
        other = self.make_store()

        if not self.outlives_its_process:
            assert other.load(thread) is None
            return
        done = self.graph(other, ("ask", ask), name=name).resume(thread, "yes")
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


def look_again(given: Any, ctx: Any) -> Any:
    return dict(ctx.state)

"""What every checkpoint store has to do, as a pytest class to inherit from.

class TestMyStore(CheckpointStoreContract):
    def make_store(self):
        return MyStore(...)
"""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync

from hitl_approvals.decisions import Reject, Respond
from hitl_approvals.exceptions import (
    AlreadyDecided,
    ApprovalRejected,
    InterruptNotFound,
    PayloadRejected,
    TransitionNotAllowed,
)
from hitl_approvals.stores.checkpoints import NODE, PAUSE, CheckpointStore
from hitl_approvals.testing.checkpoint_graphs import (
    ask_approval,
    ask_twice,
    execute,
    look_again,
)
from hitl_approvals.testing.checkpoint_store_forks import CheckpointStoreForks
from hitl_approvals.testing.checkpoint_store_harness import THREADS, errors
from hitl_approvals.testing.checkpoint_store_keeping import CheckpointStoreKeeping


class CheckpointStoreContract(CheckpointStoreForks, CheckpointStoreKeeping):
    """Tests of one store. Override `make_store`; the rest as far as the store differs."""

    # run and resume

    def test_it_pauses_and_goes_on(self, store: CheckpointStore) -> None:
        transfer = self.graph(store, ("ask", ask_approval), ("execute", execute))

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
        graph = self.graph(store, ("ask", ask_approval))
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

        graph = self.graph(store, ("empty", empty), ("ask", ask_approval))

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
        graph = self.graph(store, ("ask", ask_approval))
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
        graph = self.graph(store, ("ask", ask_approval))
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

            graph = self.graph(store, ("ask", ask_approval), ("effect", effect))
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
            [("before", execute), ("asks", ask_approval), ("after", execute)],
            [("before", execute), ("after", execute)],
            [("ask", ask_approval), ("before", execute), ("after", execute)],
        ],
        ids=["renamed", "removed", "moved"],
    )
    def test_a_changed_node_is_a_visible_stop_that_names_it(
        self, store: CheckpointStore, nodes: list[Any]
    ) -> None:
        name = f"g-{uuid4().hex[:8]}"
        old = [("before", execute), ("ask", ask_approval), ("after", execute)]
        thread = self.graph(store, *old, name=name).run({}).thread_id
        self.forget(name)
        graph = self.graph(store, *nodes, name=name)

        told = self.stopped(lambda: graph.resume(thread, "yes"))

        first_gone = "before" if nodes[0][0] != "before" else "ask"
        assert f"Node `{first_gone}`" in told

    def test_a_node_may_be_added_behind(self, store: CheckpointStore) -> None:
        name = f"g-{uuid4().hex[:8]}"
        thread = self.graph(store, ("ask", ask_approval), name=name).run(1).thread_id
        self.forget(name)
        graph = self.graph(
            store, ("ask", ask_approval), ("execute", execute), name=name
        )

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

        graph = self.graph(
            store, ("ask", ask_approval), ("look", look), ("last", look_again)
        )
        thread = graph.run(1).thread_id

        done = graph.resume(thread, "yes")

        approved = {"input": 1, "approved": "yes"}
        assert seen == [{"ask": approved}]
        assert done.output == {"ask": approved, "look": "look"}

    def test_async_nodes_and_the_async_verbs(self, store: CheckpointStore) -> None:
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

"""The saver as one run of an agent uses it: saves together, and loses nothing by it."""

from __future__ import annotations

import asyncio
import dataclasses
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypedDict

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection
from django.test.utils import CaptureQueriesContext

from hitl_approvals.checkpoints import TypeNotAllowed, close_idle_connections, rows
from hitl_approvals.checkpoints.models import Checkpoint, PendingWrite

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


@dataclasses.dataclass
class Own:
    """A type that no checkpoint may hold."""


class SaveFailed(Exception):
    """Stands for a database that takes one row and not another."""


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Iterator[None]:
    yield
    close_idle_connections()


def saver() -> Any:
    from hitl_approvals.checkpoints import DjangoCheckpointSaver

    return DjangoCheckpointSaver()


def config(**more: Any) -> Any:
    return {"configurable": {"thread_id": "t"}, **more}


def built(made: Any, *together: Callable[..., Any], last: Any = None) -> Any:
    """Compile a graph that runs nodes at once, and one after them."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(State)
    last = last or (lambda state: {"log": ["last"]})
    graph.add_node("last", last)
    for number, node in enumerate(together):
        graph.add_node(str(number), node)
        graph.add_edge(START, str(number))
        graph.add_edge(str(number), "last")
    graph.add_edge("last", END)
    return graph.compile(checkpointer=made)


def run(graph: Any, given: Any = {"log": []}, **options: Any) -> Any:  # noqa: B006
    return async_to_sync(graph.ainvoke)(
        given, config(**options), durability="sync", version="v1"
    )


def tasks() -> set[str]:
    """Return the tasks whose writes are stored."""
    return set(PendingWrite.objects.values_list("task_id", flat=True))


def test_what_is_stored_is_the_same_and_takes_fewer_statements() -> None:
    from tests.engines.checkpoints_support import build, history, resume
    from tests.engines.checkpoints_support import config as of

    def story(made: Any, thread: str) -> list[Any]:
        graph = build(made)
        given = {"log": ["asked"]}
        async_to_sync(graph.ainvoke)(given, of(thread), durability="sync")
        assert resume(saver(), thread)["done"]
        return history(saver(), thread)

    with CaptureQueriesContext(connection) as plain:
        expected = story(saver(), "plain")
    with CaptureQueriesContext(connection) as joined:
        found = story(saver().one_run().saver, "joined")

    assert found == expected
    # The input and two supersteps that end before the pause took five transactions, and
    # take two. On PostgreSQL each was one statement; elsewhere the two of one statement
    # gain a beginning and an end, and what was saved apart loses them.
    assert len(plain) - len(joined) == (3 if connection.vendor == "postgresql" else 4)


def test_a_superstep_of_one_task_is_saved_with_its_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone: list[str] = []
    monkeypatch.setattr(rows, "save_writes", lambda *args, **kw: alone.append("writes"))

    assert run(built(saver().one_run().saver, lambda state: {"log": [1]}))
    assert alone == []
    assert len(tasks()) == Checkpoint.objects.count() - 1


def test_what_a_task_wrote_is_stored_while_others_are_under_way() -> None:
    stored: list[int] = []

    async def quick(state: Any) -> Any:
        return {"log": ["quick"]}

    async def slow(state: Any) -> Any:
        count = sync_to_async(lambda: len(tasks()))
        before = await count()
        async with asyncio.timeout(30):
            while await count() == before:
                await asyncio.sleep(0)
        stored.append(await count() - before)
        return {"log": ["slow"]}

    output = run(built(saver().one_run().saver, quick, slow))

    assert (sorted(output["log"]), stored) == (["last", "quick", "slow"], [1])


@pytest.mark.parametrize("verb", ["put", "put_writes"])
def test_what_ends_no_superstep_does_not_even_wait_for_the_loop(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langgraph.checkpoint.base import empty_checkpoint

    from hitl_approvals.checkpoints import DjangoCheckpointSaver

    begun = threading.Event()
    save = getattr(DjangoCheckpointSaver, verb)

    def noted(*args: Any) -> Any:
        begun.set()
        return save(*args)

    monkeypatch.setattr(DjangoCheckpointSaver, verb, noted)
    made = saver().one_run().saver
    of: Any = {"configurable": {"thread_id": "t", "checkpoint_id": "1"}}

    async def a_sibling_that_blocks() -> None:
        writes = made.aput_writes(of, [("log", 1)], "task")
        checkpoint: Any = {**empty_checkpoint(), "id": "1"}
        put = made.aput(config(), checkpoint, {"source": "input", "step": -1}, {})
        first, second = (put, writes) if verb == "put" else (writes, put)
        task = asyncio.create_task(first)
        await asyncio.sleep(0)
        assert begun.wait(30)
        await task
        await second

    async_to_sync(a_sibling_that_blocks)()
    assert (Checkpoint.objects.count(), tasks()) == (1, {"task"})


def test_what_tasks_wrote_is_kept_if_their_step_cannot_be_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save = rows.save_checkpoint

    def failing(*args: Any, **options: Any) -> None:
        if Checkpoint.objects.count() == 2:
            raise SaveFailed
        save(*args, **options)

    ran = []

    def once(state: Any) -> Any:
        ran.append("once")
        return {"log": ["once"]}

    graph = built(saver().one_run().saver, once)
    with monkeypatch.context() as patched:
        patched.setattr(rows, "save_checkpoint", failing)
        with pytest.raises(SaveFailed):
            run(graph)
    assert Checkpoint.objects.count() == 2
    assert len(tasks()) == 2

    assert run(built(saver().one_run().saver, once), None)["log"] == ["once", "last"]
    assert ran == ["once"]


def test_the_input_is_kept_if_the_step_after_it_cannot_be_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save = rows.save_checkpoint

    def failing(*args: Any, before: Any = ()) -> None:
        if before:
            raise SaveFailed
        save(*args)

    graph = built(saver().one_run().saver, lambda state: {"log": [1]})
    with monkeypatch.context() as patched:
        patched.setattr(rows, "save_checkpoint", failing)
        with pytest.raises(SaveFailed):
            run(graph, {"log": ["given"]})
    assert (Checkpoint.objects.count(), len(tasks())) == (1, 1)

    assert run(graph, None)["log"] == ["given", 1, "last"]


def test_the_input_is_stored_while_the_first_step_is_under_way() -> None:
    from langgraph.graph import END, START, StateGraph

    async def way(state: Any) -> str:
        async with asyncio.timeout(30):
            while not await sync_to_async(Checkpoint.objects.exists)():
                await asyncio.sleep(0)
        return "last"

    graph = StateGraph(State)
    graph.add_node("last", lambda state: {"log": ["last"]})
    graph.add_conditional_edges(START, way, ["last"])
    graph.add_edge("last", END)

    made = graph.compile(checkpointer=saver().one_run().saver)
    assert run(made, {"log": ["given"]})["log"] == ["given", "last"]


def test_an_error_replaces_the_one_before_though_a_checkpoint_follows_at_once() -> None:
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.serde.types import ERROR

    one_run = saver().one_run()
    of = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}}
    saver().put_writes(of, [(ERROR, "first")], "task")

    async def both() -> None:
        writes = one_run.saver.aput_writes(of, [(ERROR, "second")], "task")
        one_run.saver.get_next_version(None, None)
        made: Any = {**empty_checkpoint(), "id": "2"}
        put = one_run.saver.aput(of, made, {"source": "loop", "step": 1}, {})
        await asyncio.gather(writes, put)

    async_to_sync(both)()
    put = saver().put(of, {**empty_checkpoint(), "id": "1"}, {}, {})
    assert saver().get_tuple(put).pending_writes == [("task", ERROR, "second")]


def test_what_cannot_be_saved_at_all_is_an_error() -> None:
    graph = built(saver().one_run().saver, lambda state: {"log": [Own()]})

    with pytest.raises(TypeNotAllowed, match=r"Own` may not be stored"):
        run(graph)
    assert Checkpoint.objects.count() == 2


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_limit_of_tasks_at_once_does_not_lock_it_up(at_once: int) -> None:
    nodes = [lambda state, n=n: {"log": [n]} for n in range(3)]
    graph = built(saver().one_run().saver, *nodes)

    output = run(graph, max_concurrency=at_once)
    assert sorted(map(str, output["log"])) == ["0", "1", "2", "last"]


def test_a_checkpoint_that_waits_for_its_writes_gets_them() -> None:
    from tests.engines import checkpoints_support as graphs

    for length in range(1, 6):
        graph = graphs.build_delta(saver().one_run().saver)
        state = run(graph, {"log": [f"asked {length}"]})
        assert len(state["log"]) == 2 * length


def test_a_kept_answer_is_given_once_and_only_to_the_same_question(
    django_assert_num_queries: Any,
) -> None:
    run(built(saver(), lambda state: {"log": [[1]]}))
    one_run = saver().one_run()
    get, root = async_to_sync(one_run.saver.aget_tuple), config()

    with django_assert_num_queries(3), one_run.keeping():
        first = get(root)
    first.checkpoint["channel_values"]["log"].append("changed")
    with django_assert_num_queries(0):
        second = get({"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
    assert second == saver().get_tuple(root)
    with django_assert_num_queries(3):
        get(root)

    def kept() -> None:
        with one_run.keeping():
            get(root)

    kept()
    with django_assert_num_queries(1):
        assert get({"configurable": {"thread_id": "t", "checkpoint_ns": "a"}}) is None
    with django_assert_num_queries(3):
        get(root)
    kept()
    one_run.forget()
    with django_assert_num_queries(3):
        get(root)
    kept()

    async def write() -> None:
        await one_run.saver.aput_writes(first.config, [("log", 2)], "task")

    async_to_sync(write)()
    assert ("task", "log", 2) in get(root).pending_writes
    kept()
    async_to_sync(one_run.saver.adelete_thread)("t")
    assert get(root) is None


def test_a_saver_with_verbs_of_its_own_is_used_as_it_is() -> None:
    from hitl_approvals.checkpoints import DjangoCheckpointSaver

    seen = []

    class Noting(DjangoCheckpointSaver):
        def put(self, *args: Any) -> Any:
            seen.append("put")
            return super().put(*args)

    marked = saver()
    marked.aput_writes = saver().aput_writes
    for made in (Noting(), marked):
        one_run = made.one_run()
        assert vars(one_run.saver) == vars(made)
        with one_run.keeping():
            run(built(one_run.saver, lambda state: {"log": [1]}))
    assert len(seen) == 4

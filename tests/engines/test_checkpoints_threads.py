"""LangGraph saves on threads of its own: nothing is lost, and nothing stays open."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from hitl_approvals.checkpoints import close_idle_connections, lending
from hitl_approvals.exceptions import UnsafeContext

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]
DURABILITIES = ["sync", "async", "exit"]


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseDatabaseWrapper]]:
    """Note every connection that is opened beside the test's own."""
    connection.ensure_connection()
    made: list[BaseDatabaseWrapper] = []
    backend = type(connections["default"])
    connect = backend.connect

    def noted(self: BaseDatabaseWrapper) -> None:
        connect(self)
        made.append(self)

    monkeypatch.setattr(backend, "connect", noted)
    yield made
    close_idle_connections()


def saver() -> Any:
    from hitl_approvals.checkpoints import DjangoCheckpointSaver

    return DjangoCheckpointSaver()


def others_on_the_server() -> int | None:
    """Return how many other connections the server counts; SQLite has no server."""
    question = {
        "postgresql": "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        "mysql": "SELECT count(*) FROM information_schema.processlist "
        "WHERE db = database() AND id <> connection_id()",
    }.get(connection.vendor)
    if question is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(question)
        return int(cursor.fetchone()[0])


def until_none_is_left() -> None:
    """Wait for the server to notice that connections were closed."""
    from tests.engines.processes import until

    if others_on_the_server() is not None:
        assert until(lambda: others_on_the_server() == 0)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_graph_that_pauses_and_goes_on_loses_nothing(
    durability: str, opened: list[BaseDatabaseWrapper]
) -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    from tests.engines import checkpoints_support as graphs

    memory = InMemorySaver()
    stored: dict[str, Any] = {}
    for name, made in (("memory", memory), ("ours", None)):
        [asked] = graphs.start(made or saver(), "t", durability=durability)
        assert asked.value == {"pay": 50}
        state = graphs.resume(made or saver(), "t", durability=durability)
        assert (state["log"], state["done"]) == (graphs.LOG, True)
        stored[name] = graphs.history(made or saver(), "t")

    assert stored["ours"] == stored["memory"]
    assert len(stored["ours"]) > 1
    # Whatever the number of threads.
    assert sum(one.connection is not None for one in opened) <= lending.LIMIT
    close_idle_connections()
    assert [one.connection for one in opened] == [None] * len(opened)
    until_none_is_left()


@pytest.mark.parametrize("durability", DURABILITIES)
def test_the_thread_is_over_or_waits_as_the_graph_does(durability: str) -> None:
    from hitl_approvals.checkpoints.models import Checkpoint, PendingWrite
    from tests.engines import checkpoints_support as graphs

    graphs.start(saver(), "t", durability=durability)
    paused = Checkpoint.objects.latest("checkpoint_id")
    assert paused.has_next
    waiting = PendingWrite.objects.filter(checkpoint_id=paused.checkpoint_id)
    assert waiting.filter(channel="__interrupt__").count() == 1

    graphs.resume(saver(), "t", durability=durability)
    last = Checkpoint.objects.latest("checkpoint_id")
    assert not last.has_next
    assert not PendingWrite.objects.filter(checkpoint_id=last.checkpoint_id).exists()


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("defer", [False, True], ids=["at once", "deferred"])
def test_a_thread_that_stops_where_branches_meet_is_not_over(
    defer: bool, durability: str
) -> None:
    from datetime import timedelta

    from django.utils import timezone

    from hitl_approvals.checkpoints import retention
    from tests.engines import checkpoints_support as graphs

    def left_open() -> int:
        future = timezone.now() + timedelta(days=1)
        return retention.remove_old(future, dry_run=True).open

    graph = graphs.build_meeting(saver(), defer=defer)
    graph.invoke({"log": []}, graphs.config("t"), durability=durability)
    assert graph.get_state(graphs.config("t")).next == ("both",)
    assert left_open() == 1

    graph.invoke(None, graphs.config("t"), durability=durability)
    assert graph.get_state(graphs.config("t")).next == ()
    assert left_open() == 0


@pytest.mark.parametrize(
    ("durability", "stored"), [("sync", (5, 12, 6)), ("exit", (2, 1, 3))]
)
def test_a_graph_with_one_pause_stores_what_the_page_says(
    durability: str, stored: tuple[int, int, int]
) -> None:
    from tests.engines import checkpoints_support as graphs
    from tests.support.checkpoints import counts

    graphs.start(saver(), "t", durability=durability)
    graphs.resume(saver(), "t", durability=durability)

    assert counts("t") == stored


def test_many_threads_share_one_saver(opened: list[BaseDatabaseWrapper]) -> None:
    from tests.engines import checkpoints_support as graphs

    one = saver()

    def converse(number: int) -> Any:
        graphs.start(one, f"t{number}", durability="async")
        return graphs.resume(one, f"t{number}", durability="async")["log"]

    with ThreadPoolExecutor(4) as pool:
        logs = list(pool.map(converse, range(8)))
        left = list(
            pool.map(lambda _: connections.all(initialized_only=True), range(4))
        )

    assert logs == [graphs.LOG] * 8
    assert left == [[]] * 4
    assert {len(graphs.history(one, f"t{number}")) for number in range(8)} == {5}
    close_idle_connections()
    assert all(made.connection is None for made in opened)
    until_none_is_left()


def test_a_value_that_does_not_change_is_stored_once() -> None:
    from hitl_approvals.checkpoints.models import ChannelValue
    from tests.engines import checkpoints_support as graphs

    graphs.start(saver(), "t")
    graphs.resume(saver(), "t")

    assert ChannelValue.objects.filter(channel="order").count() == 1
    assert ChannelValue.objects.filter(channel="log").count() == 4


def test_a_transaction_round_invoke_does_not_cover_the_checkpoints() -> None:
    from hitl_approvals.checkpoints.models import Checkpoint
    from tests.engines import checkpoints_support as graphs

    def roll_back() -> None:
        with transaction.atomic():
            graphs.start(saver(), "t", durability="sync")
            raise RuntimeError("roll back")

    if connection.vendor == "sqlite":
        with pytest.raises(UnsafeContext, match="inside a transaction"):
            roll_back()
        assert Checkpoint.objects.count() == 0
    else:
        with pytest.raises(RuntimeError, match="roll back"):
            roll_back()
        assert Checkpoint.objects.count() == 3


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_transaction_round_ainvoke_covers_them(
    durability: str, opened: list[BaseDatabaseWrapper]
) -> None:
    from langgraph.types import Command

    from hitl_approvals.checkpoints.models import Checkpoint
    from tests.engines import checkpoints_support as graphs

    def ran(given: Any) -> Any:
        invoke = async_to_sync(graphs.build(saver()).ainvoke)
        return invoke(given, graphs.config("t"), durability=durability)

    with transaction.atomic():
        ran({"log": ["asked"]})
        assert Checkpoint.objects.count() > 0
        transaction.set_rollback(True)
    assert Checkpoint.objects.count() == 0

    with transaction.atomic():
        ran({"log": ["asked"]})
    assert ran(Command(resume="yes"))["log"] == graphs.LOG
    assert opened == []

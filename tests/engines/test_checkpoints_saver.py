"""What the saver refuses and promises beyond LangGraph's own suite."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from django.apps import apps
from django.db import connection, router
from django.test.utils import CaptureQueriesContext
from pydantic import BaseModel, ConfigDict, Field, RootModel, create_model

from hitl_approvals.checkpoints import (
    CheckpointTooNew,
    TypeChanged,
    TypeNotAllowed,
    close_idle_connections,
)
from hitl_approvals.checkpoints.keys import key_of
from hitl_approvals.checkpoints.models import ChannelValue, Checkpoint, PendingWrite
from hitl_approvals.exceptions import HitlConfigurationError, RunDiverged
from tests.workspace import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


class Refund(BaseModel):
    amount: int


@dataclasses.dataclass
class Order:
    number: str


class Colour(Enum):
    RED = "red"


class Aliased(BaseModel):
    order: str = Field(alias="orderNumber")


@dataclasses.dataclass(frozen=True)
class Summed:
    amounts: list[int]
    total: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", sum(self.amounts))


class Numbers(RootModel[list[int]]):
    pass


class Planet(Enum):
    EARTH = (5.976e24, 6.37814e6)


class Secretive(BaseModel):
    order: str
    secret: str = Field(exclude=True)


@dataclasses.dataclass
class Seeded:
    seed: dataclasses.InitVar[int]
    number: int = 0

    def __post_init__(self, seed: int) -> None:
        self.number = seed


class Renamed(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)

    order: str = Field(serialization_alias="orderNumber")


CHANGED: dict[str, Any] = {
    "Refund": create_model("Refund", amount=(int, ...), order=(str, ...)),
    "Order": dataclasses.make_dataclass("Order", ["identity"]),
    "Colour": Enum("Colour", {"BLUE": "blue"}),
}
"""What later releases made of these classes."""


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Iterator[None]:
    yield
    close_idle_connections()


def saver(**options: Any) -> Any:
    from hitl_approvals.checkpoints import DjangoCheckpointSaver

    return DjangoCheckpointSaver(**options)


def config(thread: str = "t", **more: str) -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **more}}


def put(made: Any, value: Any, **changes: Any) -> Any:
    from langgraph.checkpoint.base import empty_checkpoint

    checkpoint = {
        **empty_checkpoint(),
        "channel_values": {"state": value},
        "channel_versions": {"state": made.get_next_version(None, None)},
        **changes,
    }
    versions = checkpoint["channel_versions"]
    return made.put(config(), checkpoint, {"source": "loop", "step": 0}, versions)


def got(made: Any) -> Any:
    return made.get_tuple(config()).checkpoint["channel_values"]["state"]


@pytest.mark.parametrize("value", [Refund(amount=1), Order("A1"), Colour.RED])
def test_a_type_of_ours_is_refused_before_anything_is_stored(value: Any) -> None:
    name = type(value).__name__
    for nested in (value, [value], {"deep": [{"in": value}]}):
        with pytest.raises(TypeNotAllowed, match=rf"`.*\.{name}` may not be stored"):
            put(saver(), nested)
        with pytest.raises(TypeNotAllowed, match=rf"allow=\[{name}\]"):
            saver().put_writes(config(checkpoint_id="1"), [("state", nested)], "task")
    assert Checkpoint.objects.count() == 0
    assert ChannelValue.objects.count() == 0
    assert PendingWrite.objects.count() == 0
    assert issubclass(TypeNotAllowed, RunDiverged)


@pytest.mark.parametrize("value", [Refund(amount=1), Order("A1"), Colour.RED])
def test_a_type_that_is_named_is_stored_and_comes_back(value: Any) -> None:
    made = saver(allow=[type(value)])
    put(made, {"deep": [value]})

    assert got(made) == {"deep": [value]}
    with pytest.raises(TypeNotAllowed, match="may not be read from"):
        got(saver())
    named = (type(value).__module__, type(value).__name__)
    assert got(saver(allow=[named])) == {"deep": [value]}
    assert got(saver().with_allowlist([named])) == {"deep": [value]}


@pytest.mark.parametrize("value", [Refund(amount=1), Order("A1"), Colour.RED])
def test_a_class_that_is_gone_or_has_changed_stops_the_run(
    value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langgraph.types import Send

    module, name = sys.modules[__name__], type(value).__name__
    made = saver(allow=[(__name__, name)])
    for nested in (value, [{"in": value}], Send("node", value)):
        put(made, nested)
        assert got(made) == nested
        with monkeypatch.context() as patched:
            patched.delattr(module, name)
            with pytest.raises(TypeChanged, match=rf"`.*\.{name}`.*AttributeError"):
                got(made)
        with monkeypatch.context() as patched:
            patched.setattr(module, name, CHANGED[name])
            with pytest.raises(
                TypeChanged, match=rf"`.*\.{name}`.*Give the class back"
            ):
                got(made)
    assert issubclass(TypeChanged, RunDiverged)


def test_a_class_that_could_not_be_found_again_is_not_stored() -> None:
    class Local(BaseModel):
        amount: int = 1

    with pytest.raises(TypeNotAllowed, match="Define the class at the top"):
        put(saver(allow=[Local]), Local())
    assert Checkpoint.objects.count() == 0


def test_a_model_that_does_not_take_its_own_values_comes_back() -> None:
    made = saver(allow=[Aliased])
    put(made, Aliased(orderNumber="A1"))

    assert got(made) == Aliased(orderNumber="A1")


@pytest.mark.parametrize(
    "value", [Summed([1, 2]), Numbers([1, 2]), Planet.EARTH], ids=lambda one: str(one)
)
def test_what_langgraph_would_hand_back_bare_comes_back(value: Any) -> None:
    made = saver(allow=[type(value)])
    put(made, [value])

    assert got(made) == [value]


def test_a_field_that_is_never_stored_stops_nobody() -> None:
    made = saver(allow=[Secretive])
    put(made, Secretive(order="A1", secret="x"))

    assert got(made).order == "A1"
    assert not hasattr(got(made), "secret")


@pytest.mark.parametrize("value", [Seeded(1), Renamed(order="A1")])
def test_what_could_not_be_made_again_is_not_stored(value: Any) -> None:
    name = type(value).__name__
    with pytest.raises(TypeNotAllowed, match=rf"`.*\.{name}` may not be stored.*again"):
        put(saver(allow=[type(value)]), {"deep": [value]})
    assert Checkpoint.objects.count() == 0


def test_an_array_that_cannot_be_read_is_not_taken_for_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ormsgpack

    from hitl_approvals.checkpoints import StrictSerializer

    monkeypatch.setitem(sys.modules, "numpy", None)
    array = ormsgpack.Ext(6, ormsgpack.packb(["<i8", [1], "C", bytes(8)]))
    with pytest.raises(TypeChanged, match=r"`numpy\.ndarray`"):
        StrictSerializer().loads_typed(("msgpack", ormsgpack.packb([array])))


def test_nothing_but_msgpack_is_read() -> None:
    import ormsgpack

    from hitl_approvals.checkpoints import StrictSerializer

    prompt = ["langchain_core", "prompts", "prompt", "PromptTemplate"]
    made = {"lc": 1, "type": "constructor", "id": prompt, "kwargs": {"template": "x"}}
    for kind in ("json", "pickle"):
        with pytest.raises(TypeNotAllowed, match=f"stored as '{kind}'"):
            StrictSerializer().loads_typed((kind, json.dumps(made).encode()))
    unknown = ormsgpack.packb(ormsgpack.Ext(99, b"\xc0"))
    with pytest.raises(TypeNotAllowed, match="code 99"):
        StrictSerializer().loads_typed(("msgpack", unknown))


def test_langgraphs_and_pythons_own_types_need_no_name() -> None:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langgraph.types import Command, Interrupt, Send

    value = [
        HumanMessage("hello", id="1"),
        AIMessage("", id="2", tool_calls=[{"name": "pay", "args": {}, "id": "c"}]),
        ToolMessage("paid", tool_call_id="c", id="3"),
        Send("node", {"a": 1}),
        Interrupt(value={"pay": 1}, id="i"),
        [Decimal("1.50"), UUID(int=1), {1, 2}, b"\x00\xff", "\x00 ü", 2**60, None],
        [date(2026, 1, 2), time(1, 2), timedelta(3, 4, 5), ZoneInfo("Europe/Berlin")],
        [datetime(2026, 1, 2, 3, tzinfo=UTC), timezone(timedelta(hours=1))],
        [re.compile("a", re.IGNORECASE), Path("a/b"), IPv4Address("127.0.0.1")],
        Command(goto=Send("node", {"a": 1}, timeout=5), update={"a": Decimal(1)}),
    ]
    made = saver()
    put(made, value)

    assert got(made) == value


@pytest.mark.parametrize("strict", ["true", "false"])
def test_the_environment_changes_nothing(strict: str) -> None:
    program = (
        "import django; django.setup()\n"
        "from hitl_approvals.checkpoints import StrictSerializer, TypeNotAllowed\n"
        "from tests.engines.test_checkpoints_saver import Order\n"
        "try:\n"
        "    StrictSerializer().dumps_typed(Order('A1'))\n"
        "except TypeNotAllowed:\n"
        "    print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={
            "DJANGO_SETTINGS_MODULE": "tests.settings.sqlite",
            "LANGGRAPH_STRICT_MSGPACK": strict,
        },
        capture_output=True,
        text=True,
    )

    assert done.stdout == "refused\n", done.stderr


def test_what_a_newer_langgraph_wrote_is_refused_with_what_to_do() -> None:
    made = saver()
    put(made, 1)
    Checkpoint.objects.update(format=99)

    for ask in (lambda: made.get_tuple(config()), lambda: list(made.list(None))):
        with pytest.raises(CheckpointTooNew, match=r"format 99; .* Run the newer"):
            ask()


def test_the_format_is_stored() -> None:
    put(saver(), 1, v=4)

    assert Checkpoint.objects.get().format == 4


def test_an_id_that_does_not_fit_is_refused() -> None:
    made = saver()
    with pytest.raises(ValueError, match="a task id has at most 64"):
        made.put_writes(config(checkpoint_id="1"), [("a", 1)], "x" * 65)
    with pytest.raises(ValueError, match="a checkpoint id has at most 64"):
        put(made, 1, id="x" * 65)


def test_of_two_answers_of_one_task_the_last_is_kept() -> None:
    from langgraph.checkpoint.serde.types import INTERRUPT, RESUME

    made = saver()
    of = put(made, 1)
    made.put_writes(of, [(RESUME, 1), (INTERRUPT, "asks"), (RESUME, 2)], "task")

    written = made.get_tuple(of).pending_writes
    assert sorted(written) == [("task", INTERRUPT, "asks"), ("task", RESUME, 2)]


def test_it_uses_the_database_of_the_models_or_the_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert saver().using == "default"
    assert saver(using="other").using == "other"
    with monkeypatch.context() as patched:
        patched.setattr(router, "db_for_write", lambda model: f"of {model.__name__}")
        assert saver().using == "of Checkpoint"


def test_without_the_app_it_says_what_to_add(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apps, "is_installed", lambda name: False)
    with pytest.raises(HitlConfigurationError, match="to INSTALLED_APPS and migrate"):
        saver()


def test_a_serializer_of_the_sites_own_says_what_it_allows_itself() -> None:
    from hitl_approvals.checkpoints import StrictSerializer

    own = StrictSerializer(allow=[Order])
    made = saver(serde=own)
    put(made, [Order("A1")])
    assert got(made) == [Order("A1")]
    with pytest.raises(HitlConfigurationError, match="`allow`"):
        saver(serde=own, allow=[Order])


def test_what_is_stored_can_be_encrypted() -> None:
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

    from hitl_approvals.checkpoints import StrictSerializer

    class Turned:
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return "turned", bytes(255 - byte for byte in plaintext)

        def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
            return self.encrypt(ciphertext)[1]

    made = saver(serde=EncryptedSerializer(Turned(), StrictSerializer(allow=[Order])))
    stored = put(made, [Order("secret")])
    made.put_writes(stored, [("state", "secret")], "task")

    assert got(made) == [Order("secret")]
    assert made.get_tuple(config()).pending_writes == [("task", "state", "secret")]
    for row in (ChannelValue.objects.get(), PendingWrite.objects.get()):
        assert b"secret" not in bytes(row.value)
        assert row.type == "msgpack+turned"
    with pytest.raises(TypeNotAllowed):
        put(made, [Refund(amount=1)])


def test_values_that_are_rebuilt_from_history_are_rebuilt_and_keep_it() -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    from tests.engines import checkpoints_support as graphs

    ours, memory = saver(), InMemorySaver()
    for length in range(1, 6):
        for made in (ours, memory):
            graph = graphs.build_delta(made)
            state = graph.invoke({"log": [f"asked {length}"]}, graphs.config("t"))
            assert len(state["log"]) == 2 * length
    ours_state, other = (
        graphs.build_delta(made).get_state(graphs.config("t")).values
        for made in (ours, memory)
    )
    assert ours_state == other

    Checkpoint.objects.update(run_key=key_of("run"))
    with pytest.raises(NotImplementedError, match="DeltaChannel"):
        ours.prune(["t"])
    with pytest.raises(NotImplementedError, match="DeltaChannel"):
        ours.delete_for_runs(["run"])


def test_listing_goes_on_over_pages_and_stops_where_it_should(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from hitl_approvals.checkpoints import saver as module

    monkeypatch.setattr(module, "PAGE", 3)
    made = saver()
    ids = []
    for number in range(8):
        stored = put(made, [number])
        ids.append(stored["configurable"]["checkpoint_id"])
        made.put_writes(stored, [("a", number)], str(uuid4()))
    made.copy_thread("t", "u")

    def listed(*arguments: Any, **options: Any) -> Any:
        found = [*made.list(*arguments, **options)]
        return [one.checkpoint["channel_values"]["state"][0] for one in found]

    assert listed(config()) == [7, 6, 5, 4, 3, 2, 1, 0]
    assert listed(config(), limit=4) == [7, 6, 5, 4]
    assert listed(config(), limit=0) == []
    assert listed(config(), before=config(checkpoint_id=ids[2])) == [1, 0]
    assert listed(config(), filter={"step": 0}, limit=5) == [7, 6, 5, 4, 3]
    assert listed(config(), filter={"step": 1}) == []
    assert listed(None) == [one for one in range(7, -1, -1) for _ in "tu"]
    assert listed(config(checkpoint_id=ids[3])) == [3]


def test_pruning_refuses_what_it_does_not_know() -> None:
    made = saver()
    with pytest.raises(TypeError, match="not a str"):
        made.prune("t")
    with pytest.raises(ValueError, match="no strategy 'some'"):
        made.prune(["t"], strategy="some")


def test_one_step_takes_few_statements(django_assert_num_queries: Any) -> None:
    made = saver()
    stored = put(made, [1])
    made.put_writes(stored, [("a", 1), ("b", 2)], "task")

    with django_assert_num_queries(3):
        made.get_tuple(config())
    with django_assert_num_queries(1):
        made.put_writes(stored, [("a", 1), ("b", 2)], "other")


def test_states_of_any_size_are_read_by_few_texts() -> None:
    made, texts = saver(), set()
    for many in range(1, 18):
        values = {f"channel {number}": [number] for number in range(many)}
        versions = {name: made.get_next_version(None, None) for name in values}
        put(made, None, channel_values=values, channel_versions=versions)
        with CaptureQueriesContext(connection) as asked:
            assert made.get_tuple(config()).checkpoint["channel_values"] == values
        texts.add(asked[1]["sql"].count(", '"))

    # One channel, two, up to 4, up to 8, up to 16 and up to 32.
    assert len(texts) == 6

"""The checkpoints' tables: what they keep, refuse, and take for the same."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.db import IntegrityError, connection, transaction

from hitl_approvals import checkpoints
from hitl_approvals.checkpoints import rows
from hitl_approvals.checkpoints.keys import checked_id, key_of
from hitl_approvals.checkpoints.models import ChannelValue, Checkpoint, PendingWrite
from hitl_approvals.checkpoints.rows import Place
from tests.support.checkpoints import (
    checkpoint,
    counts,
    save,
    save_writes,
    value,
    write,
)
from tests.workspace import ROOT

pytestmark = pytest.mark.django_db
PLACE = Place("t", "")


def test_the_latest_checkpoint_is_the_one_with_the_greatest_id():
    for number in (2, 10, 1):
        save(checkpoint("t", number))

    assert rows.read_checkpoint("default", PLACE, None).checkpoint_id == "00000010"
    assert rows.read_checkpoint("default", PLACE, "00000002").parent_id == "00000001"
    assert rows.read_checkpoint("default", PLACE, "00000003") is None
    assert rows.read_checkpoint("default", Place("t", "other"), None) is None


def test_threads_whose_names_differ_by_little_are_different_threads():
    names = ["thread", "Thread", "thread ", "thrëad", "", "a\x1fb", "x" * 5000]
    for number, name in enumerate(names, start=1):
        save(checkpoint(name, number))

    for number, name in enumerate(names, start=1):
        found = rows.read_checkpoint("default", Place(name, ""), None)
        assert found.checkpoint_id == f"{number:08}"
        assert found.thread_id == name


def test_ids_are_compared_and_sorted_byte_by_byte():
    for one in ("a", "B", "-b", "A", "_", "b"):
        save(checkpoint("t", 1, checkpoint_id=one))

    found = Checkpoint.objects.order_by("checkpoint_id")

    assert list(found.values_list("checkpoint_id", flat=True)) == sorted(
        ["a", "B", "-b", "A", "_", "b"]
    )


def test_keys_do_not_depend_on_how_texts_are_joined():
    assert key_of("a", "bc") != key_of("ab", "c")
    assert key_of("\ud800") != key_of("\ud801")
    assert len(key_of("x" * 100_000)) == 32


def test_an_id_that_does_not_fit_is_refused_and_not_cut_off():
    assert checked_id("x" * 64, "task id") == "x" * 64
    with pytest.raises(ValueError, match="a task id has at most 64 characters"):
        checked_id("x" * 65, "task id")


def test_the_same_checkpoint_again_replaces_the_row_and_no_value():
    save(checkpoint("t", 1), value("t", "messages", 1, b"first"))
    first = Checkpoint.objects.get()
    save(
        checkpoint("t", 1, body=b"again", has_next=True),
        value("t", "messages", 1, b"again"),
        value("t", "topic", 1),
    )

    row = Checkpoint.objects.get()
    assert (bytes(row.body), row.has_next) == (b"again", True)
    assert (row.pk, row.saved_at) == (first.pk, first.saved_at)
    values = ChannelValue.objects.order_by("channel")
    assert [bytes(one.value) for one in values] == [b"first", b"value"]


def test_a_value_that_did_not_change_is_stored_once():
    save(checkpoint("t", 1), value("t", "topic", 1), value("t", "messages", 1))
    save(checkpoint("t", 2), value("t", "messages", 2))

    assert counts() == (2, 0, 3)


def test_what_a_task_wrote_first_stays_unless_it_is_to_be_replaced():
    save_writes(write("t", 1, 0, value=b"first"), write("t", 1, 1))
    save_writes(write("t", 1, 0, value=b"again"), write("t", 1, 2))
    assert counts() == (0, 3, 0)
    assert bytes(PendingWrite.objects.get(idx=0).value) == b"first"

    save_writes(write("t", 1, 0, value=b"new", channel="other"), replace=True)
    row = PendingWrite.objects.get(idx=0)
    assert (bytes(row.value), row.channel) == (b"new", "other")


def test_writes_come_in_the_order_of_path_task_and_place():
    save_writes(
        write("t", 1, 0, task_id="b", task_path="~1", channel="4"),
        write("t", 1, 1, task_id="a", task_path="~1", channel="3"),
        write("t", 1, 0, task_id="a", task_path="~1", channel="2"),
        write("t", 1, -4, task_id="z", channel="1"),
    )

    found = rows.read_writes("default", PLACE, ["00000001", "00000002"])

    assert [one[1] for one in found["00000001"]] == ["1", "2", "3", "4"]
    assert found["00000002"] == []


def test_more_than_one_statement_can_take_is_saved_all_the_same():
    many = 1100
    save(
        checkpoint("t", 1),
        *(value("t", f"channel {number}", 1) for number in range(many)),
    )
    save_writes(*(write("t", 1, number) for number in range(many)))
    assert counts() == (1, many, many)

    slots = list(ChannelValue.objects.values_list("slot", flat=True))
    assert len(rows.read_values("default", PLACE, slots)) == many


def test_texts_and_bytes_of_any_kind_come_back():
    data = bytes(range(256)) * 40
    text = "Ünï \U0001f600 %s 'quoted' \"twice\" \\"
    save(checkpoint("t", 1, body=data), value("t", text, 1, data))
    save_writes(write("t", 1, 0, channel=text, task_path=text, value=b""))

    assert bytes(Checkpoint.objects.get().body) == data
    stored = rows.read_values("default", PLACE, [ChannelValue.objects.get().slot])
    assert list(stored.values()) == [(text, ("msgpack", data))]
    found = rows.read_writes("default", PLACE, ["00000001"])["00000001"]
    assert found == [("task", text, ("msgpack", b""))]


@pytest.mark.parametrize("broken", [{"format": 0}, {"type": ""}, {"checkpoint_id": ""}])
def test_a_checkpoint_that_makes_no_sense_is_refused(broken):
    with pytest.raises(IntegrityError), transaction.atomic():
        save(checkpoint("t", 1, **broken), value("t", "messages", 1))

    assert counts() == (0, 0, 0)


def test_values_and_writes_without_a_type_are_refused():
    with pytest.raises(IntegrityError), transaction.atomic():
        save(checkpoint("t", 1), value("t", "messages", 1)._replace(type=""))
    with pytest.raises(IntegrityError), transaction.atomic():
        save_writes(write("t", 1, 0, type=""))

    assert counts() == (0, 0, 0)


def test_one_checkpoint_takes_few_statements(django_assert_num_queries):
    alone = 1
    # One statement, or two in a transaction.
    with_values = 1 if connection.vendor == "postgresql" else 2
    with django_assert_num_queries(alone):
        save(checkpoint("t", 1))
    with django_assert_num_queries(with_values):
        save(checkpoint("t", 2), value("t", "a", 1), value("t", "b", 1))
    with django_assert_num_queries(1):
        save_writes(write("t", 2, 0), write("t", 2, 1))


def test_rows_say_what_they_are():
    save(checkpoint("t", 1), value("t", "topic", 1))
    save_writes(write("t", 1, 0))

    assert str(Checkpoint.objects.get()) == "t 00000001"
    assert str(ChannelValue.objects.get()).startswith("topic ")
    assert str(PendingWrite.objects.get()) == "channel of task"


def test_the_app_needs_no_langgraph_until_the_saver_is_asked_for():
    program = (
        "import sys; sys.modules['langgraph'] = None\n"
        "import django; django.setup()\n"
        "from hitl_approvals import checkpoints\n"
        "from hitl_approvals.checkpoints import models, retention\n"
        "try:\n"
        "    checkpoints.DjangoCheckpointSaver\n"
        "except ImportError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings.sqlite"},
        capture_output=True,
        text=True,
    )

    assert done.stdout.startswith("MissingExtra `DjangoCheckpointSaver` "), done.stderr
    assert 'pip install "django-hitl-approvals[langgraph]"' in done.stdout


def test_the_app_lists_its_public_names():
    assert checkpoints.__all__ == sorted(checkpoints._HOME)
    assert set(checkpoints.__all__) <= set(dir(checkpoints))
    assert checkpoints.CheckpointTooNew.__name__ == "CheckpointTooNew"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        checkpoints.nothing  # noqa: B018

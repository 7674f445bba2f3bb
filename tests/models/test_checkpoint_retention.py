"""What is old and over can go; what waits, failed or goes on stays, however old."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from hitl_approvals.checkpoints import pruning, retention
from hitl_approvals.checkpoints.keys import key_of
from hitl_approvals.checkpoints.models import ChannelValue, Checkpoint, PendingWrite
from tests.support.checkpoints import (
    checkpoint,
    conversation,
    counts,
    save,
    save_writes,
    value,
    write,
)

pytestmark = pytest.mark.django_db
OLD = timezone.now() - timedelta(days=40)
BOUND = timezone.now() - timedelta(days=30)


def test_old_threads_that_are_over_go_and_nothing_else():
    conversation("over", 3, at=OLD)
    conversation("young", 3)
    tally = retention.remove_old(BOUND)

    assert tally.as_dict() == {
        "threads": 1,
        "checkpoints": 3,
        "writes": 2,
        "values": 4,
        "open": 0,
        "delta": 0,
    }
    assert counts("over") == (0, 0, 0)
    assert counts("young") == (3, 2, 4)


def test_a_thread_is_as_young_as_its_last_checkpoint():
    conversation("t", 2, at=OLD)
    save(checkpoint("t", 3))

    assert retention.remove_old(BOUND).threads == 0
    assert counts("t") == (3, 1, 3)


@pytest.mark.parametrize("keep_last", [False, True])
def test_a_thread_that_waits_or_goes_on_is_left_alone(keep_last):
    conversation("asks", 3, at=OLD)
    save_writes(write("asks", 3, -3, channel="__interrupt__"))
    conversation("failed", 3, at=OLD)
    save_writes(write("failed", 3, -1, channel="__error__"))
    conversation("goes on", 3, at=OLD, has_next=True)
    before = counts()

    tally = retention.remove_old(BOUND, keep_last=keep_last)

    assert (tally.threads, tally.open) == (0, 3)
    assert counts() == before


def test_a_graph_that_is_over_is_over_whatever_its_subgraphs_left():
    conversation("t", 3, at=OLD)
    conversation("t", 2, at=OLD, ns="child:1", has_next=True)
    save_writes(write("t", 2, -3, ns="child:1", channel="__interrupt__"))

    assert retention.remove_old(BOUND).threads == 1
    assert counts("t") == (0, 0, 0)


def test_a_graph_of_which_only_a_subgraph_was_saved_is_judged_by_that():
    conversation("t", 2, at=OLD, ns="child:1", has_next=True)

    assert retention.remove_old(BOUND).open == 1
    assert counts("t") == (2, 1, 3)


def test_the_latest_checkpoint_can_be_kept_with_what_it_needs():
    conversation("t", 4, at=OLD)

    tally = retention.remove_old(BOUND, keep_last=True)

    assert (tally.threads, tally.checkpoints, tally.writes, tally.values) == (
        1,
        3,
        3,
        3,
    )
    row = Checkpoint.objects.get()
    assert (row.checkpoint_id, row.parent_id) == ("00000004", None)
    assert set(ChannelValue.objects.values_list("channel", flat=True)) == {
        "messages",
        "topic",
    }
    assert counts("t") == (1, 0, 2)
    # There is nothing more to take.
    again = retention.remove_old(BOUND, keep_last=True)
    assert (again.checkpoints, again.writes, again.values) == (0, 0, 0)


def test_values_that_are_rebuilt_from_history_keep_it():
    conversation("t", 3, at=OLD, is_delta=True)

    tally = retention.remove_old(BOUND, keep_last=True)
    assert (tally.threads, tally.delta) == (0, 1)
    assert counts("t") == (3, 2, 4)
    with pytest.raises(NotImplementedError, match=r"DeltaChannel.*: t$"):
        pruning.keep_latest("default", [key_of("t")])

    assert retention.remove_old(BOUND).threads == 1
    assert counts("t") == (0, 0, 0)


def test_it_goes_on_batch_by_batch_to_the_end():
    for number in range(7):
        conversation(f"over {number}", 1, at=OLD)
    conversation("asks", 1, at=OLD, has_next=True)

    tally = retention.remove_old(BOUND, batch=2)

    assert (tally.threads, tally.open) == (7, 1)
    assert counts() == (1, 0, 2)


def test_a_dry_run_counts_the_same_and_deletes_nothing():
    conversation("a", 3, at=OLD)
    conversation("b", 2, at=OLD)
    before = counts()
    for keep_last in (False, True):
        would = retention.remove_old(BOUND, keep_last=keep_last, dry_run=True)
        assert counts() == before
        if keep_last:
            assert retention.remove_old(BOUND, keep_last=True) == would
            assert counts() == (2, 0, 4)


def test_the_call_of_a_subgraph_goes_with_the_checkpoint_it_came_from():
    conversation("t", 3)
    for ns, root_id in {
        "child:old": "00000001",
        "child:last": "00000003",
        "child:early": "00000009",
        "memory": "00000001",
    }.items():
        row = checkpoint("t", 1, ns=ns, root_id=root_id, versions={"messages": 1})
        save(row, value("t", "messages", 1, ns=ns))

    pruning.keep_latest("default", [key_of("t")])

    left = Checkpoint.objects.values_list("checkpoint_ns", flat=True)
    assert sorted(left) == ["", "child:early", "child:last", "memory"]
    assert counts("t") == (4, 0, 5)


def test_a_copy_is_complete_and_the_source_stays():
    conversation("source", 3)
    save_writes(write("source", 3, -3))

    pruning.copy_thread("default", "source", "target")

    assert counts("source") == counts("target") == (3, 3, 4)
    copied = Checkpoint.objects.filter(thread_id="target")
    assert {bytes(one.body) for one in copied} == {b"body"}
    with pytest.raises(ValueError, match="'target' has checkpoints already"):
        pruning.copy_thread("default", "source", "target")
    assert counts("target") == (3, 3, 4)


def test_deleting_a_run_leaves_what_other_runs_share_with_it():
    conversation("t", 3, run_key=key_of("second"))
    pruning.delete_runs("default", [key_of("second"), key_of("nobody")])

    assert counts("t") == (2, 2, 3)
    assert ChannelValue.objects.filter(channel="topic").count() == 1

    conversation("d", 1, run_key=key_of("delta"), is_delta=True)
    with pytest.raises(NotImplementedError, match="DeltaChannel"):
        pruning.delete_runs("default", [key_of("delta")])
    assert counts("d") == (1, 0, 2)


def test_the_command_says_what_it_did():
    conversation("over", 3, at=OLD)
    conversation("asks", 1, at=OLD, has_next=True)

    told = ran("--older-than", "30d", "--dry-run")
    assert told == ("threads 1\ncheckpoints 3\nwrites 2\nvalues 4\nopen 1\ndelta 0\n")
    assert ran("--older-than", "30d", "--keep-last").startswith("threads 1\n")
    assert counts("over") == (1, 0, 2)
    assert ran("--older-than", "60d").startswith("threads 0\n")
    assert ran("--older-than", "12h", "--batch", "1").startswith("threads 1\n")
    assert PendingWrite.objects.count() == 0
    assert counts() == (1, 0, 2)


@pytest.mark.parametrize("text", ["30", "d", "0d", "3w", "3.5d", "3 d", ""])
def test_a_span_that_says_nothing_is_refused(text):
    with pytest.raises(CommandError, match="is no span such as 30d"):
        ran("--older-than", text)


def ran(*arguments):
    out = StringIO()
    call_command("hitl_checkpoints", *arguments, stdout=out)
    return out.getvalue()

"""`hitl_checkpoints` is killed in and between its batches; the next run finishes."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import QuerySet
from django.utils import timezone

from hitl_approvals.checkpoints import pruning
from hitl_approvals.checkpoints.models import ChannelValue, Checkpoint, PendingWrite
from tests.crash.children import Child
from tests.support.checkpoints import conversation, counts

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]

OLD = [f"old-{number}" for number in range(5)]
WHOLE, PRUNED, GONE = (3, 2, 4), (1, 0, 2), (0, 0, 0)
"""Checkpoints, writes and values of a thread: as saved, with its latest only, deleted."""
TABLES = 3
COMMAND = ("hitl_checkpoints", "--older-than", "30d", "--batch", "2")


@pytest.fixture(autouse=True)
def _rows() -> Iterator[None]:
    long_ago = timezone.now() - timedelta(days=40)
    for thread in OLD:
        conversation(thread, 3, at=long_ago)
    conversation("young", 3)
    yield
    for model in (Checkpoint, PendingWrite, ChannelValue):
        model.objects.all().delete()


def nth(times: int, call: Callable[..., Any], *, before: bool) -> Callable[..., Any]:
    """Return a function that is killed right before or after it is called for the n-th time."""
    calls = Counter[str]()

    def counted(*args: Any, **options: Any) -> Any:
        calls["all"] += 1
        if before and calls["all"] == times:
            os.kill(os.getpid(), signal.SIGKILL)
        result = call(*args, **options)
        if calls["all"] == times:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return counted


def run_and_die(arm: Callable[[], None], folder: Path, *options: str) -> None:
    """Run the command in a process that kills itself."""

    def work() -> None:
        arm()
        call_command(*COMMAND, *options)

    child = Child("retention", work, folder / "log")
    try:
        assert child.hit(signal.SIGKILL, seconds=30), (folder / "log").read_text()
    finally:
        child.kill()


def at_delete(times: int, *, before: bool) -> Callable[[], None]:
    def arm() -> None:
        QuerySet.delete = nth(times, QuerySet.delete, before=before)  # type: ignore[method-assign]

    return arm


def assert_next_run_finishes(end: tuple[int, int, int], *options: str) -> None:
    """Run the command to its end; it has to do exactly what the killed one left."""
    left = [thread for thread in OLD if counts(thread) == WHOLE]
    out = StringIO()

    call_command(*COMMAND, *options, stdout=out)

    assert {counts(thread) for thread in OLD} == {end}
    assert counts("young") == WHOLE
    told = dict(line.split() for line in out.getvalue().splitlines())
    assert int(told["checkpoints"]) == len(left) * (WHOLE[0] - end[0])
    call_command(*COMMAND, *options, stdout=out)
    assert {counts(thread) for thread in OLD} == {end}


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("times", range(1, 3 * TABLES + 1))
def test_killed_at_any_statement_no_thread_is_half_deleted(
    times: int, before: bool, tmp_path: Path
) -> None:
    run_and_die(at_delete(times, before=before), tmp_path)

    # What a batch deletes is one transaction: those before it are gone, it is whole.
    gone = 2 * ((times - 1) // TABLES)
    seen = Counter(counts(thread) for thread in OLD)
    assert seen == Counter({GONE: gone, WHOLE: len(OLD) - gone})
    assert counts("young") == WHOLE
    assert_next_run_finishes(GONE)


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_killed_between_two_batches_the_next_run_goes_on(
    batches: int, tmp_path: Path
) -> None:
    def arm() -> None:
        pruning.delete_threads = nth(batches, pruning.delete_threads, before=False)

    run_and_die(arm, tmp_path)

    seen = Counter(counts(thread) for thread in OLD)
    assert seen == Counter({GONE: min(2 * batches, 5), WHOLE: max(5 - 2 * batches, 0)})
    assert_next_run_finishes(GONE)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("times", range(1, 2 * TABLES + 1))
def test_killed_while_it_keeps_the_latest_no_thread_is_half_pruned(
    times: int, before: bool, tmp_path: Path
) -> None:
    run_and_die(at_delete(times, before=before), tmp_path, "--keep-last")

    pruned = (times - 1) // TABLES
    seen = Counter(counts(thread) for thread in OLD)
    assert seen == Counter({PRUNED: pruned, WHOLE: len(OLD) - pruned})
    assert_next_run_finishes(PRUNED, "--keep-last")

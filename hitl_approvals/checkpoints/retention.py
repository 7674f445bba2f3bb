"""Finds threads that are old and over, and deletes them or their history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from django.db import router
from django.db.models import Max

from hitl_approvals.checkpoints import pruning
from hitl_approvals.checkpoints.keys import ROOT_NS
from hitl_approvals.checkpoints.lending import connection_of
from hitl_approvals.checkpoints.models import ChannelValue, Checkpoint, PendingWrite

BATCH = 100
"""How many threads one transaction deletes."""


@dataclass(slots=True)
class Tally:
    """What was deleted, or would be, and what was left alone."""

    threads: int = 0
    checkpoints: int = 0
    writes: int = 0
    values: int = 0
    open: int = 0
    """Threads that were left alone: they have something to do, or somebody to wait for."""
    delta: int = 0
    """Threads whose history cannot go, as values are rebuilt from it (`DeltaChannel`)."""

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def remove_old(
    before: datetime,
    *,
    keep_last: bool = False,
    dry_run: bool = False,
    using: str | None = None,
    batch: int = BATCH,
) -> Tally:
    """Delete the threads whose last checkpoint was saved before a moment and that are over.

    A thread is over if its latest checkpoint has no pending writes, so no interrupt, no
    answer and no error either, and nothing drives a node from there.

    Args:
        before: The moment.
        keep_last: Keep the latest checkpoint of each namespace: a conversation can go on.
        dry_run: Only count.
        using: The database; by default the one that checkpoints are written to.
        batch: How many threads are looked at and deleted at a time.
    """
    alias = using or router.db_for_write(Checkpoint)
    tally = Tally()
    with connection_of(alias):
        for keys in _old_threads(alias, before, batch):
            busy = _open_among(alias, keys)
            tally.open += len(busy)
            over = [key for key in keys if key not in busy]
            if keep_last:
                delta = _delta_among(alias, over)
                tally.delta += len(delta)
                over = [key for key in over if key not in delta]
            _remove(alias, over, tally, keep_last=keep_last, dry_run=dry_run)
    return tally


def _remove(
    alias: str, keys: Sequence[str], tally: Tally, *, keep_last: bool, dry_run: bool
) -> None:
    remove = pruning.keep_latest if keep_last else pruning.delete_threads
    counts = remove(alias, keys, dry_run=dry_run)
    tally.threads += len(keys)
    tally.checkpoints += counts[Checkpoint]
    tally.writes += counts[PendingWrite]
    tally.values += counts[ChannelValue]


def _old_threads(alias: str, before: datetime, batch: int) -> Iterator[list[str]]:
    """Yield the threads in which nothing was saved since, some at a time."""
    last = ""
    while True:
        found = (
            Checkpoint.objects.using(alias)
            .filter(thread_key__gt=last)
            .values("thread_key")
            .annotate(last_saved=Max("saved_at"))
            .filter(last_saved__lt=before)
            .order_by("thread_key")
        )
        keys = list(found.values_list("thread_key", flat=True)[:batch])
        if keys:
            yield keys
        if len(keys) < batch:
            return
        last = keys[-1]


def _open_among(alias: str, keys: Sequence[str]) -> set[str]:
    """Return the threads that wait, or that have something to do."""
    latest: dict[tuple[str, str], tuple[str, bool]] = {}
    found = Checkpoint.objects.using(alias).filter(thread_key__in=keys)
    for thread_key, ns_key, checkpoint_id, has_next in found.order_by(
        "-checkpoint_id"
    ).values_list("thread_key", "ns_key", "checkpoint_id", "has_next"):
        latest.setdefault((thread_key, ns_key), (checkpoint_id, has_next))
    rooted = {thread_key for thread_key, ns_key in latest if ns_key == ROOT_NS}
    busy = set()
    for (thread_key, ns_key), (checkpoint_id, has_next) in latest.items():
        # What a subgraph waits for, the graph that called it waits for too.
        if thread_key in rooted and ns_key != ROOT_NS:
            continue
        waiting = PendingWrite.objects.using(alias).filter(
            thread_key=thread_key, ns_key=ns_key, checkpoint_id=checkpoint_id
        )
        if has_next or waiting.exists():
            busy.add(thread_key)
    return busy


def _delta_among(alias: str, keys: Sequence[str]) -> set[str]:
    found = Checkpoint.objects.using(alias).filter(thread_key__in=keys, is_delta=True)
    return set(found.values_list("thread_key", flat=True).distinct())

"""Deletes and copies rows of whole threads. Knows no LangGraph."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.db import connections, models, transaction
from django.utils import timezone

from hitl_approvals.checkpoints.keys import ROOT_NS, key_of, slot_of
from hitl_approvals.checkpoints.models import ChannelValue, Checkpoint, PendingWrite

_MANY = 400
"""How many keys one statement names, below what SQLite can take."""
Counts = Counter[type[models.Model]]
"""How many rows of each table were deleted, or would be."""


class _Head(NamedTuple):
    """What has to be known of a checkpoint to tell what can go with it."""

    pk: int
    thread_id: str
    thread_key: str
    ns_key: str
    checkpoint_ns: str
    checkpoint_id: str
    root_id: str | None
    is_delta: bool
    versions: str

    @property
    def slots(self) -> set[str]:
        return {slot_of(*item) for item in json.loads(self.versions).items()}


def delete_threads(
    alias: str, thread_keys: Sequence[str], *, dry_run: bool = False
) -> Counts:
    """Delete everything of some threads; return how many rows of each table."""
    counts: Counts = Counter()
    with transaction.atomic(using=alias):
        for keys in _in_parts(thread_keys):
            for model in (Checkpoint, PendingWrite, ChannelValue):
                found = _rows(model, alias).filter(thread_key__in=keys)
                _count_and_delete(found, counts, dry_run=dry_run)
    return counts


def keep_latest(
    alias: str, thread_keys: Sequence[str], *, dry_run: bool = False
) -> Counts:
    """Delete all but the latest checkpoint of each namespace, one thread at a time.

    Raises:
        NotImplementedError: A thread uses a `DeltaChannel`; nothing was deleted.
    """
    counts: Counts = Counter()
    for keys in _in_parts(thread_keys):
        found = _rows(Checkpoint, alias).filter(thread_key__in=keys, is_delta=True)
        _refuse_delta(set(found.values_list("thread_id", flat=True)))
    for thread_key in thread_keys:
        with transaction.atomic(using=alias):
            heads = _heads(alias, thread_key=thread_key)
            # It may have begun to use one since.
            _refuse_delta({one.thread_id for one in heads if one.is_delta})
            kept = _latest(heads)
            going = [one for one in heads if one.pk not in kept]
            _delete(alias, going, heads, counts, dry_run=dry_run)
    return counts


def delete_runs(alias: str, run_keys: Sequence[str]) -> None:
    """Delete the checkpoints of some runs, and the values that no other one has.

    Raises:
        NotImplementedError: A thread uses a `DeltaChannel`; nothing was deleted.
    """
    with transaction.atomic(using=alias):
        gone: dict[str, set[int]] = defaultdict(set)
        for keys in _in_parts(run_keys):
            found = _rows(Checkpoint, alias).filter(run_key__in=keys)
            for pk, thread_key in found.values_list("pk", "thread_key"):
                gone[thread_key].add(pk)
        for thread_key, pks in gone.items():
            heads = _heads(alias, thread_key=thread_key)
            _refuse_delta({one.thread_id for one in heads if one.is_delta})
            going = [one for one in heads if one.pk in pks]
            _delete(alias, going, heads, Counter(), dry_run=False)


def copy_thread(alias: str, source: str, target: str) -> None:
    """Copy everything of a thread to another.

    Raises:
        ValueError: The other one has checkpoints already.
    """
    changed: dict[type[models.Model], dict[str, Any]] = {
        Checkpoint: {
            "thread_key": key_of(target),
            "thread_id": target,
            "saved_at": timezone.now(),
        },
        PendingWrite: {"thread_key": key_of(target)},
        ChannelValue: {"thread_key": key_of(target)},
    }
    with transaction.atomic(using=alias):
        if _rows(Checkpoint, alias).filter(thread_key=key_of(target)).exists():
            raise ValueError(f"thread {target!r} has checkpoints already")
        for model, new in changed.items():
            _copy(alias, model, key_of(source), new)


def _copy(
    alias: str, model: type[models.Model], thread_key: str, new: dict[str, Any]
) -> None:
    """Copy rows inside the database: they may be large, and nothing reads them here."""
    connection = connections[alias]
    quote = connection.ops.quote_name
    meta = model._meta  # noqa: SLF001  Django's way to ask
    fields: list[Any] = [one for one in meta.concrete_fields if not one.primary_key]
    table = quote(meta.db_table)
    columns = ", ".join(quote(one.column) for one in fields)
    chosen = ", ".join("%s" if one.name in new else quote(one.column) for one in fields)
    parameters = [
        one.get_db_prep_save(new[one.name], connection)
        for one in fields
        if one.name in new
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({columns}) SELECT {chosen} FROM {table} "  # noqa: S608  names of ours
            f"WHERE {quote('thread_key')} = %s",
            [*parameters, thread_key],
        )


def _heads(alias: str, **where: str) -> list[_Head]:
    found = _rows(Checkpoint, alias).filter(**where).order_by("-checkpoint_id")
    return [_Head(*row) for row in found.values_list(*_Head._fields)]


def _latest(heads: Sequence[_Head]) -> set[int]:
    """Return which rows stay, of a thread's rows in falling order."""
    latest: dict[str, _Head] = {}
    for one in heads:
        latest.setdefault(one.ns_key, one)
    roots = {one.checkpoint_id for one in heads if one.ns_key == ROOT_NS}
    root = latest.get(ROOT_NS)
    return {
        one.pk
        for one in latest.values()
        # A call of a subgraph has its task's id in its namespace. It goes with the
        # checkpoint that it was called from, once that is saved; a subgraph with a
        # memory of its own has no such id, and keeps its latest.
        if ":" not in one.checkpoint_ns
        or one.root_id not in roots
        or (root is not None and one.root_id == root.checkpoint_id)
    }


def _delete(
    alias: str,
    going: Sequence[_Head],
    heads: Sequence[_Head],
    counts: Counts,
    *,
    dry_run: bool,
) -> None:
    """Delete checkpoints by name, with their writes, and values that no other one has.

    By name, so that what a run adds meanwhile stays. It builds on a checkpoint that
    stays, so it needs no value that only those that go have.
    """
    gone = {one.pk for one in going}
    groups: dict[str, list[_Head]] = defaultdict(list)
    for one in going:
        groups[one.ns_key].append(one)
    for ns_key, group in groups.items():
        where = {"thread_key": group[0].thread_key, "ns_key": ns_key}
        staying = [one for one in heads if one.ns_key == ns_key and one.pk not in gone]
        used = set[str]().union(*(one.slots for one in staying))
        unused = set[str]().union(*(one.slots for one in group)) - used
        for ids in _in_parts([one.checkpoint_id for one in group]):
            for model in (PendingWrite, Checkpoint):
                found = _rows(model, alias).filter(**where, checkpoint_id__in=ids)
                _count_and_delete(found, counts, dry_run=dry_run)
            if not dry_run:
                orphans = _rows(Checkpoint, alias).filter(**where, parent_id__in=ids)
                orphans.update(parent_id=None)
        for slots in _in_parts(sorted(unused)):
            found = _rows(ChannelValue, alias).filter(**where, slot__in=slots)
            _count_and_delete(found, counts, dry_run=dry_run)


def _count_and_delete(found: Any, counts: Counts, *, dry_run: bool) -> None:
    counts[found.model] += found.count() if dry_run else found.delete()[0]


def _refuse_delta(found: Any) -> None:
    if names := sorted(found):
        raise NotImplementedError(
            "a thread with a DeltaChannel cannot be pruned, its values are rebuilt from "
            f"older checkpoints: {', '.join(names)}"
        )


def _in_parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), _MANY):
        yield keys[start : start + _MANY]


def _rows(model: type[models.Model], alias: str) -> Any:
    return model._default_manager.using(alias)  # noqa: SLF001  that of any model

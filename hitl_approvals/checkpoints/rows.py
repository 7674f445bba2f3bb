"""Reads and writes the rows of single checkpoints. Knows no LangGraph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from hitl_approvals.checkpoints.inserting import Insert, Statement, execute
from hitl_approvals.checkpoints.keys import key_of
from hitl_approvals.checkpoints.models import ChannelValue, Checkpoint, PendingWrite
from hitl_approvals.statements import where

Typed = tuple[str, bytes]
"""A value as the serializer gives and takes it: its type's name, and bytes."""
_AT_ONCE = 10_000
"""How many parameters several statements have that become one, below what is taken."""
_MANY = 400
"""How many keys one question names, below what SQLite can take."""


@dataclass(frozen=True, slots=True)
class Place:
    """One namespace of one thread."""

    thread_id: str
    checkpoint_ns: str

    @property
    def keys(self) -> tuple[str, str]:
        return key_of(self.thread_id), key_of(self.checkpoint_ns)

    @property
    def where(self) -> dict[str, str]:
        thread_key, ns_key = self.keys
        return {"thread_key": thread_key, "ns_key": ns_key}


class Stored(NamedTuple):
    """A checkpoint's row as it is read."""

    pk: int
    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_id: str | None
    format: int
    versions: str
    type: str
    body: bytes

    @property
    def place(self) -> Place:
        return Place(self.thread_id, self.checkpoint_ns)


class NewCheckpoint(NamedTuple):
    """A checkpoint's row as it is written; the fields are the table's, in this order."""

    thread_key: str
    ns_key: str
    checkpoint_id: str
    parent_id: str | None
    root_id: str | None
    thread_id: str
    checkpoint_ns: str
    run_key: str | None
    format: int
    versions: str
    has_next: bool
    is_delta: bool
    type: str
    body: bytes
    saved_at: datetime


class NewValue(NamedTuple):
    """A channel value's row as it is written."""

    thread_key: str
    ns_key: str
    slot: str
    channel: str
    type: str
    value: bytes


class NewWrite(NamedTuple):
    """A pending write's row as it is written."""

    thread_key: str
    ns_key: str
    checkpoint_id: str
    task_id: str
    idx: int
    task_path: str
    channel: str
    type: str
    value: bytes


_READ = ("pk", *Stored._fields[1:])
_CHECKPOINTS = Insert(
    Checkpoint,
    NewCheckpoint._fields,
    key=("thread_key", "ns_key", "checkpoint_id"),
    # One that is saved a second time is the same, unless it was meant to be changed.
    replaced=("run_key", "format", "versions", "has_next", "is_delta", "type", "body"),
)
_VALUES = Insert(ChannelValue, NewValue._fields, key=("thread_key", "ns_key", "slot"))
_FIRST_WRITES = Insert(
    PendingWrite,
    NewWrite._fields,
    key=("thread_key", "ns_key", "checkpoint_id", "task_id", "idx"),
)
_LAST_WRITES = replace(_FIRST_WRITES, replaced=("channel", "type", "value"))


def save_checkpoint(
    connection: BaseDatabaseWrapper,
    row: NewCheckpoint,
    values: Sequence[NewValue],
    writes: Sequence[NewWrite] = (),
    *,
    before: Sequence[NewCheckpoint] = (),
) -> None:
    """Insert a checkpoint and the values that are new with it, all or nothing.

    The same checkpoint again replaces the row; a value that is there is left alone.

    Args:
        connection: The database.
        row: The checkpoint.
        values: The values that are new with it.
        writes: What tasks wrote to come to it: as by `save_writes`, nothing is replaced.
        before: The checkpoints that it comes after, if they are not saved either.
    """
    statements = [
        *_VALUES.statements(connection, values),
        *_FIRST_WRITES.statements(connection, writes),
        *_CHECKPOINTS.statements(connection, [*before, row]),
    ]
    total = sum(len(parameters) for _, parameters in statements)
    if connection.vendor == "postgresql" and len(statements) > 1 and total <= _AT_ONCE:
        # One statement is a transaction of its own, and one trip instead of four.
        statements = [_as_one(statements)]
    execute(connection, statements)


def save_writes(
    connection: BaseDatabaseWrapper, rows: Sequence[NewWrite], *, replace: bool
) -> None:
    """Insert what a task wrote; under a place that is taken, replace it or leave it."""
    insert = _LAST_WRITES if replace else _FIRST_WRITES
    execute(connection, insert.statements(connection, rows))


def read_checkpoint(
    alias: str, place: Place, checkpoint_id: str | None
) -> Stored | None:
    """Return one checkpoint of a namespace: that one, or the latest."""
    wanted = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    row = where(alias, Checkpoint, **place.where, **wanted).first(_latest)
    return None if row is None else Stored(*row)


def read_page(
    alias: str,
    where: dict[str, str],
    *,
    after: Stored | None,
    before: str | None,
    size: int,
) -> list[Stored]:
    """Return the next checkpoints, newest first.

    Args:
        alias: The database.
        where: Keys that they have.
        after: The last one of the page before this.
        before: Only ids smaller than this.
        size: How many at most.
    """
    found = Checkpoint.objects.using(alias).filter(**where)
    if before is not None:
        found = found.filter(checkpoint_id__lt=before)
    if after is not None:
        found = found.filter(
            models.Q(checkpoint_id__lt=after.checkpoint_id)
            | models.Q(checkpoint_id=after.checkpoint_id, pk__lt=after.pk)
        )
    found = found.order_by("-checkpoint_id", "-pk")
    return [Stored(*row) for row in found.values_list(*_READ)[:size]]


def read_values(
    alias: str, place: Place, slots: Sequence[str]
) -> dict[str, tuple[str, Typed]]:
    """Return the values that are stored apart as (channel, value), by their slot."""
    values = {}
    for start in range(0, len(slots), _MANY):
        part = _padded(slots[start : start + _MANY])
        found = where(alias, ChannelValue, **place.where, slot__in=part)
        for slot, channel, kind, value in found.read(_values):
            values[slot] = (channel, (kind, bytes(value)))
    return values


def read_writes(
    alias: str, place: Place, checkpoint_ids: Sequence[str]
) -> dict[str, list[tuple[str, str, Typed]]]:
    """Return pending writes as (task, channel, value), in order, by their checkpoint."""
    part = _padded(checkpoint_ids)
    found = where(alias, PendingWrite, **place.where, checkpoint_id__in=part)
    # Sorted here, as LangGraph sorts: databases disagree about text.
    ordered = sorted(found.read(_writes), key=lambda row: row[:3])
    writes: dict[str, list[tuple[str, str, Typed]]] = defaultdict(list)
    for _path, task_id, _idx, checkpoint_id, channel, kind, value in ordered:
        writes[checkpoint_id].append((task_id, channel, (kind, bytes(value))))
    return writes


def _as_one(statements: Sequence[Statement]) -> Statement:
    *before, (sql, _parameters) = statements
    parts = ", ".join(f"part_{n} AS ({one})" for n, (one, _) in enumerate(before))
    return f"WITH {parts} {sql}", [one for _, some in statements for one in some]


def _latest(found: QuerySet[Checkpoint]) -> QuerySet[Any, Any]:
    return found.order_by("-checkpoint_id").values_list(*_READ)


def _values(found: QuerySet[ChannelValue]) -> QuerySet[Any, Any]:
    return found.values_list("slot", "channel", "type", "value")


def _writes(found: QuerySet[PendingWrite]) -> QuerySet[Any, Any]:
    return found.values_list(
        "task_path", "task_id", "idx", "checkpoint_id", "channel", "type", "value"
    )


def _padded(keys: Sequence[str]) -> list[str]:
    """Return keys with the last one repeated up to a power of two.

    A statement is compiled for each number of them: so there are few such numbers.
    """
    size = 1 << (len(keys) - 1).bit_length()
    return [*keys, *[keys[-1]] * (size - len(keys))] if keys else []

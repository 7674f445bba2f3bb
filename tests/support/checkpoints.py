"""Checkpoints as rows, without LangGraph: what its saver would write for a graph."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from hitl_approvals.checkpoints import rows
from hitl_approvals.checkpoints.keys import key_of, slot_of
from hitl_approvals.checkpoints.models import ChannelValue, Checkpoint, PendingWrite


def checkpoint(
    thread: str,
    number: int,
    *,
    ns: str = "",
    versions: dict[str, Any] | None = None,
    **changes: Any,
) -> rows.NewCheckpoint:
    """Describe the checkpoint that has a number in its thread."""
    row = rows.NewCheckpoint(
        thread_key=key_of(thread),
        ns_key=key_of(ns),
        checkpoint_id=f"{number:08}",
        parent_id=f"{number - 1:08}" if number > 1 else None,
        root_id=None,
        thread_id=thread,
        checkpoint_ns=ns,
        run_key=None,
        format=4,
        versions=json.dumps(versions or {}),
        has_next=False,
        is_delta=False,
        type="msgpack",
        body=b"body",
        saved_at=timezone.now(),
    )
    return row._replace(**changes)


def value(
    thread: str, channel: str, version: Any, data: bytes = b"value", *, ns: str = ""
) -> rows.NewValue:
    """Describe a channel's value at a version."""
    slot = slot_of(channel, version)
    return rows.NewValue(key_of(thread), key_of(ns), slot, channel, "msgpack", data)


def write(
    thread: str, number: int, idx: int, *, ns: str = "", **changes: Any
) -> rows.NewWrite:
    """Describe what a task wrote after a checkpoint."""
    row = rows.NewWrite(
        key_of(thread),
        key_of(ns),
        f"{number:08}",
        "task",
        idx,
        "",
        "channel",
        "msgpack",
        b"value",
    )
    return row._replace(**changes)


def save(row: rows.NewCheckpoint, *values: rows.NewValue) -> None:
    """Save a checkpoint on the test's own connection."""
    rows.save_checkpoint(connection, row, values)


def save_writes(*written: rows.NewWrite, replace: bool = False) -> None:
    """Save writes on the test's own connection."""
    rows.save_writes(connection, written, replace=replace)


def conversation(
    thread: str, length: int, *, at: datetime | None = None, ns: str = "", **last: Any
) -> None:
    """Save a thread whose every checkpoint has a new `messages` and the same `topic`.

    Args:
        thread: Its id.
        length: How many checkpoints.
        at: When all of it was saved.
        ns: The namespace.
        **last: What is different about the latest checkpoint.
    """
    topic = value(thread, "topic", "1", ns=ns)
    for number in range(1, length + 1):
        versions = {"messages": str(number), "topic": "1"}
        row = checkpoint(
            thread, number, ns=ns, versions=versions, saved_at=at or timezone.now()
        )
        if number == length:
            row = row._replace(**last)
        save(row, value(thread, "messages", number, ns=ns), topic)
        if number < length:
            save_writes(write(thread, number, 0, ns=ns))


def counts(thread: str | None = None) -> tuple[int, int, int]:
    """Return how many checkpoints, writes and values there are, in all or of a thread."""
    where = {} if thread is None else {"thread_key": key_of(thread)}
    return (
        Checkpoint.objects.filter(**where).count(),
        PendingWrite.objects.filter(**where).count(),
        ChannelValue.objects.filter(**where).count(),
    )

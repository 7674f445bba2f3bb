"""Translates between LangGraph's dictionaries and rows. Reads and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import TASKS, _DeltaSnapshot
from langgraph.constants import START
from langgraph.pregel._checkpoint import LATEST_VERSION

from hitl_approvals.checkpoints.errors import CheckpointTooNew
from hitl_approvals.checkpoints.keys import checked_id, key_of, slot_of
from hitl_approvals.checkpoints.rows import (
    NewCheckpoint,
    NewValue,
    NewWrite,
    Place,
    Stored,
    Typed,
)

_PLAIN = frozenset({str, int, float, bool, type(None)})
"""Types whose values are as cheap to store with each checkpoint as to look up."""
_ELSEWHERE = frozenset({"channel_values", "channel_versions", "id"})
"""Keys of a checkpoint that have a place of their own in the row."""
_BRANCH = "branch:to:"
"""How LangGraph names the channels that start a node."""
_JOIN = "join:"
"""How it names those that start a node when several others are over: `join:a+b:node`."""


@dataclass(slots=True)
class Unpacked:
    """A checkpoint's row with its body unpacked; its large values are still elsewhere."""

    row: Stored
    versions: dict[str, Any]
    rest: dict[str, Any]
    inline: dict[str, Any]
    metadata: Any

    @property
    def slots(self) -> list[str]:
        """Where the values are that are not in the row."""
        return [
            slot_of(channel, version)
            for channel, version in self.versions.items()
            if channel not in self.inline
        ]


def unpacked(serde: SerializerProtocol, row: Stored) -> Unpacked:
    """Unpack what a checkpoint's row holds.

    Raises:
        CheckpointTooNew: A newer LangGraph wrote it.
    """
    if row.format > LATEST_VERSION:
        raise CheckpointTooNew(
            f"Checkpoint {row.checkpoint_id} of thread {row.thread_id!r} has format "
            f"{row.format}; the LangGraph that is installed here reads up to "
            f"{LATEST_VERSION}. Run the newer LangGraph that wrote it."
        )
    body = serde.loads_typed((row.type, bytes(row.body)))
    return Unpacked(row, json.loads(row.versions), *body)


def as_tuple(
    serde: SerializerProtocol,
    one: Unpacked,
    values: dict[str, tuple[str, Typed]],
    writes: Sequence[tuple[str, str, Typed]],
) -> CheckpointTuple:
    """Return a checkpoint as LangGraph knows it.

    Args:
        serde: Reads the values.
        one: Its row.
        values: Channels and their values, by slot; those of others may be among them.
        writes: What is pending on it.
    """
    row = one.row
    apart = [values[slot] for slot in one.slots if slot in values]
    channel_values = dict(one.inline)
    channel_values.update((name, serde.loads_typed(value)) for name, value in apart)
    checkpoint: Any = {
        **one.rest,
        "id": row.checkpoint_id,
        "channel_versions": one.versions,
        "channel_values": channel_values,
    }
    parent = row.parent_id
    return CheckpointTuple(
        config=config_of(row.thread_id, row.checkpoint_ns, row.checkpoint_id),
        checkpoint=checkpoint,
        metadata=one.metadata,
        parent_config=(
            config_of(row.thread_id, row.checkpoint_ns, parent) if parent else None
        ),
        pending_writes=[
            (task_id, channel, serde.loads_typed(value))
            for task_id, channel, value in writes
        ],
    )


def as_rows(
    serde: SerializerProtocol,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> tuple[NewCheckpoint, list[NewValue]]:
    """Return the row of a checkpoint, and those of the values that are new with it."""
    place = place_of(config)
    keys = place.keys
    held = checkpoint["channel_values"]
    inline = {name: value for name, value in held.items() if type(value) in _PLAIN}
    told: dict[str, Any] = dict(get_serializable_checkpoint_metadata(config, metadata))
    rest = {key: part for key, part in checkpoint.items() if key not in _ELSEWHERE}
    run_id = told.get("run_id")
    kind, body = serde.dumps_typed([rest, inline, told])
    row = NewCheckpoint(
        *keys,
        checked_id(checkpoint["id"], "checkpoint id"),
        _id_or_none(config["configurable"].get("checkpoint_id")),
        _id_or_none((told.get("parents") or {}).get("")),
        place.thread_id,
        place.checkpoint_ns,
        None if run_id is None else key_of(str(run_id)),
        checkpoint["v"],
        json.dumps(checkpoint["channel_versions"]),
        _goes_on(held),
        "counters_since_delta_snapshot" in told
        or any(isinstance(value, _DeltaSnapshot) for value in held.values()),
        kind,
        body,
        timezone.now(),
    )
    values = [
        NewValue(
            *keys,
            slot_of(channel, version),
            channel,
            *serde.dumps_typed(held[channel]),
        )
        for channel, version in new_versions.items()
        if channel in held and channel not in inline
    ]
    return row, values


def as_writes(
    serde: SerializerProtocol,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> tuple[list[NewWrite], bool]:
    """Return the rows of a task's writes, and whether they replace those before."""
    keys = place_of(config).keys
    checkpoint_id = checked_id(config["configurable"]["checkpoint_id"], "checkpoint id")
    task_id = checked_id(task_id, "task id")
    replace = all(channel in WRITES_IDX_MAP for channel, _value in writes)
    if replace:
        # The last one counts; a statement may not replace the same row twice.
        writes = list(dict(writes).items())
    made = [
        NewWrite(
            *keys,
            checkpoint_id,
            task_id,
            WRITES_IDX_MAP.get(channel, position),
            task_path,
            channel,
            *serde.dumps_typed(value),
        )
        for position, (channel, value) in enumerate(writes)
    ]
    return made, replace


def place_of(config: RunnableConfig) -> Place:
    """Return the thread and the namespace that a config names."""
    named = config["configurable"]
    return Place(str(named["thread_id"]), named.get("checkpoint_ns") or "")


def where_of(config: RunnableConfig | None) -> dict[str, str]:
    """Return the keys that a config for listing names: all, some or none of them."""
    if not config:
        return {}
    named = config["configurable"]
    where = {"thread_key": key_of(str(named["thread_id"]))}
    if named.get("checkpoint_ns") is not None:
        where["ns_key"] = key_of(named["checkpoint_ns"])
    if checkpoint_id := get_checkpoint_id(config):
        where["checkpoint_id"] = checkpoint_id
    return where


def config_of(thread_id: Any, checkpoint_ns: str, checkpoint_id: str) -> RunnableConfig:
    """Return the config that names a checkpoint."""
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": checkpoint_ns,
            "checkpoint_id": checkpoint_id,
        }
    }


def _goes_on(values: dict[str, Any]) -> bool:
    """Tell whether a graph has something to do from here, by what drives its nodes."""
    return (
        START in values
        or bool(values.get(TASKS))
        or any(
            channel.startswith(_BRANCH)
            or (channel.startswith(_JOIN) and _is_complete(channel, value))
            for channel, value in values.items()
        )
    )


def _is_complete(join: str, value: Any) -> bool:
    """Tell whether all the nodes that a channel waits for are over."""
    over = value[0] if isinstance(value, (list, tuple)) and value else value
    if not isinstance(over, (set, frozenset)):
        return False
    awaited = join.removeprefix(_JOIN).rpartition(":")[0]
    # A name may hold a plus itself.
    return set(awaited.split("+")) <= set("+".join(map(str, over)).split("+"))


def _id_or_none(value: object) -> str | None:
    return checked_id(value, "checkpoint id") if value else None

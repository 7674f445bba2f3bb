"""What a checkpoint is, and what keeps them. No ORM, no settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias, runtime_checkable

from hitl_approvals import canonical
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.frozen import freeze, thaw

PAUSE = "pause"
"""A node waits for a person."""
NODE = "node"
"""A node is finished."""
START, ANSWER, RECORD, END = "start", "answer", "record", "end"
"""What the in-process loop writes between those, to claim its next move."""

LISTED = (PAUSE, NODE)
"""The kinds that people see, and may fork from."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where a thread of a graph stood: enough to go on from there, or to fork.

    Its values are copies that cannot be changed, so nothing shares them.

    Raises:
        PayloadRejected: A value is not JSON.
    """

    id: str
    thread_id: str
    node: str
    """The node that paused, or the one that has just finished."""
    interrupt_payload: Any = None
    """What the node asked; None where nothing was asked, see `interrupted`."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """Outputs of the finished nodes, by name."""
    history: Sequence[Mapping[str, Any]] = ()
    """The same in the order in which they finished: `{"node", "output"}` each."""
    pending_input: Any = None
    """What flows into the node that runs next."""
    created_at: datetime = field(default_factory=_now)
    kind: str = PAUSE
    position: int = 0
    """Its number in the thread, from 1."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """What the node under way has on record. The executor's own; keep it as it is."""

    def __post_init__(self) -> None:
        for name in (
            "interrupt_payload",
            "state",
            "history",
            "pending_input",
            "record",
        ):
            text = canonical.dumps(getattr(self, name), max_bytes=None, max_depth=None)
            object.__setattr__(self, name, freeze(canonical.stored(text)))

    @property
    def interrupted(self) -> bool:
        """Whether a person is asked here. A payload may be None, so ask this."""
        return self.kind == PAUSE

    def to_json(self) -> dict[str, Any]:
        """Return the checkpoint as plain JSON, which may be changed."""
        plain = {one.name: thaw(getattr(self, one.name)) for one in fields(self)}
        return {**plain, "created_at": self.created_at.isoformat()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Checkpoint:
        """Return the checkpoint that `to_json` wrote.

        Raises:
            PayloadRejected: It is not one.
        """
        try:
            made_at = datetime.fromisoformat(value["created_at"])
            return cls(**{**value, "created_at": made_at})
        except (KeyError, TypeError, ValueError) as error:
            raise PayloadRejected(
                f"This is no checkpoint: {error}", reason="does_not_fit"
            ) from error

    def with_changes(self, **changes: Any) -> Checkpoint:
        """Return a copy that differs in the named fields."""
        return replace(self, **changes)


Checkpoints: TypeAlias = list[Checkpoint]
"""Inside a store, `list` is the name of a method."""


@runtime_checkable
class CheckpointStore(Protocol):
    """Keeps the checkpoints of threads. The executor decides what they mean.

    `save` refuses an id that it has: ids are made from the one before, so of two
    processes that would both take the next step of a thread one is refused. That is
    what makes an answer count once; a store that overwrites cannot promise it.
    """

    def save(self, checkpoint: Checkpoint) -> None:
        """Add a checkpoint.

        Raises:
            CheckpointConflict: There is one of this id.
        """
        ...

    def load(self, thread_id: str) -> Checkpoint | None:
        """Return the newest checkpoint of a thread, or None."""
        ...

    def load_by_id(self, checkpoint_id: str) -> Checkpoint | None:
        """Return a checkpoint, or None."""
        ...

    def list(self, thread_id: str) -> Checkpoints:
        """Return the checkpoints of a thread, oldest first."""
        ...

    def delete(self, thread_id: str) -> None:
        """Forget a thread; an unknown one is no error."""
        ...

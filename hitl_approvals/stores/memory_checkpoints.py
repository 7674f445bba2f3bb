"""Checkpoints in this process's memory: for development and tests."""

from __future__ import annotations

import threading

from hitl_approvals.exceptions import CheckpointConflict
from hitl_approvals.stores.checkpoints import Checkpoint, Checkpoints


class MemoryCheckpointStore:
    """Keeps checkpoints as long as the process lives. Safe among threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_id: dict[str, Checkpoint] = {}

    def save(self, checkpoint: Checkpoint) -> None:
        """Add a checkpoint.

        Raises:
            CheckpointConflict: There is one of this id.
        """
        with self._lock:
            if checkpoint.id in self._by_id:
                raise CheckpointConflict(
                    f"Checkpoint {checkpoint.id} of thread {checkpoint.thread_id!r} is "
                    "there already; another process has taken this step.",
                    checkpoint_id=checkpoint.id,
                )
            self._by_id[checkpoint.id] = checkpoint

    def load(self, thread_id: str) -> Checkpoint | None:
        """Return the newest checkpoint of a thread, or None."""
        found = self.list(thread_id)
        return found[-1] if found else None

    def load_by_id(self, checkpoint_id: str) -> Checkpoint | None:
        """Return a checkpoint, or None."""
        with self._lock:
            return self._by_id.get(checkpoint_id)

    def list(self, thread_id: str) -> Checkpoints:
        """Return the checkpoints of a thread, oldest first."""
        with self._lock:
            found = [one for one in self._by_id.values() if one.thread_id == thread_id]
        return sorted(found, key=lambda one: one.position)

    def delete(self, thread_id: str) -> None:
        """Forget a thread; an unknown one is no error."""
        with self._lock:
            for one in [*self._by_id.values()]:
                if one.thread_id == thread_id:
                    del self._by_id[one.id]

"""Interrupts in the memory of this process: for tests, and for a single process."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from uuid import uuid4

from hitl_approvals.stores.base import (
    PENDING,
    TAKEN,
    InterruptRecord,
    Records,
    conflict,
)


class MemoryInterruptStore:
    """Interrupts that end with this process; threads may share it.

    Records are kept as text, so what a caller changes afterwards changes nothing here.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._lock = Lock()

    def save(self, record: InterruptRecord) -> None:
        """Keep a new interrupt; the same id with the same content changes nothing.

        Raises:
            InterruptConflict: The id is in use for another request.
            PayloadRejected: Something in the request is not JSON.
        """
        text = record.to_text()
        with self._lock:
            known = self._texts.setdefault(record.interrupt_id, text)
        if known != text and _read(known).content != record.content:
            raise conflict(record.interrupt_id)

    def load(self, interrupt_id: str) -> InterruptRecord | None:
        """Return an interrupt that was not deleted, taken or not; else None."""
        text = self._texts.get(interrupt_id)
        return None if text is None else _read(text)

    def take(
        self, interrupt_id: str, *, key: str | None = None
    ) -> InterruptRecord | None:
        """Claim an interrupt; None if it is not there or another key has it."""
        with self._lock:
            record = self.load(interrupt_id)
            if record is None:
                return None
            if record.key is not None:
                return record if record.key == key else None
            taken = replace(record, status=TAKEN, key=key or uuid4().hex)
            self._texts[interrupt_id] = taken.to_text()
            return taken

    def release(self, interrupt_id: str, *, key: str) -> None:
        """Make an interrupt pending again if this key has it; else change nothing."""
        with self._lock:
            record = self.load(interrupt_id)
            if record is not None and record.key == key:
                free = replace(record, status=PENDING, key=None)
                self._texts[interrupt_id] = free.to_text()

    def delete(self, interrupt_id: str) -> None:
        """Forget an interrupt; one that is not there is no error."""
        with self._lock:
            self._texts.pop(interrupt_id, None)

    def list(self, prefix: str = "") -> Records:
        """Return what was not deleted, ordered by id; the prefix is literal."""
        with self._lock:
            found = sorted(
                (name, text)
                for name, text in self._texts.items()
                if name.startswith(prefix)
            )
        return [_read(text) for _name, text in found]

    def schema(self) -> str:
        """Return nothing: there is no table to make."""
        return ""

    async def asave(self, record: InterruptRecord) -> None:
        """Do what `save` does, which never waits."""
        self.save(record)

    async def aload(self, interrupt_id: str) -> InterruptRecord | None:
        """Do what `load` does, which never waits."""
        return self.load(interrupt_id)

    async def atake(
        self, interrupt_id: str, *, key: str | None = None
    ) -> InterruptRecord | None:
        """Do what `take` does, which never waits."""
        return self.take(interrupt_id, key=key)

    async def arelease(self, interrupt_id: str, *, key: str) -> None:
        """Do what `release` does, which never waits."""
        self.release(interrupt_id, key=key)

    async def adelete(self, interrupt_id: str) -> None:
        """Do what `delete` does, which never waits."""
        self.delete(interrupt_id)

    async def alist(self, prefix: str = "") -> Records:
        """Do what `list` does, which never waits."""
        return self.list(prefix)


def _read(text: str) -> InterruptRecord:
    return InterruptRecord.from_text(text)

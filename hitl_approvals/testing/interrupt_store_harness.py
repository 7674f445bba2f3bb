"""What the tests of an interrupt store stand on: hooks, records, threads and processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from hitl_approvals import canonical
from hitl_approvals.decisions import Approve
from hitl_approvals.stores.base import (
    TAKEN,
    ApprovalRequest,
    InterruptRecord,
    InterruptStore,
    RecordingStore,
)

THREADS = 8
_SECONDS = 60


class InterruptStoreHarness:
    """Override `make_store`; the rest as far as the store differs."""

    outlives_its_process: bool = True
    """False for a store whose interrupts end with the object that keeps them."""
    takes_any_id: bool = True
    """False for a store whose ids are UUIDs."""

    def make_store(self) -> InterruptStore:
        """Return a store; a second one sees what the first one keeps."""
        raise NotImplementedError

    def in_another_process(self) -> str:
        """Return Python that makes the same store as `store`, in a fresh process."""
        raise NotImplementedError

    def ready(self, store: InterruptStore, interrupt_id: str) -> None:
        """Bring an interrupt to where it can be taken: decided, if it must be."""
        if isinstance(store, RecordingStore):
            store.decide(interrupt_id, Approve())

    def finish(self, store: InterruptStore, taken: InterruptRecord) -> None:
        """Settle a taken interrupt, as `resume` does."""
        if isinstance(store, RecordingStore):
            assert taken.key is not None
            store.report(taken.interrupt_id, key=taken.key, status="succeeded")
        else:
            store.delete(taken.interrupt_id)

    def leave_thread(self) -> None:
        """Close what a thread of these tests has opened."""

    @pytest.fixture
    def store(self) -> InterruptStore:
        return self.make_store()

    async def aready(self, store: InterruptStore, interrupt_id: str) -> None:
        """Do what `ready` does, async."""
        if isinstance(store, RecordingStore):
            await store.adecide(interrupt_id, Approve())

    async def afinish(self, store: InterruptStore, taken: InterruptRecord) -> None:
        """Do what `finish` does, async."""
        if isinstance(store, RecordingStore):
            assert taken.key is not None
            await store.areport(taken.interrupt_id, key=taken.key, status="succeeded")
        else:
            await store.adelete(taken.interrupt_id)

    def run_async(self, play: Callable[[], Any]) -> None:
        """Run a coroutine function to its end."""
        asyncio.run(play())

    def mine(self, store: InterruptStore) -> InterruptStore:
        """Return the store that one of several threads uses."""
        return self.make_store() if self.outlives_its_process else store

    def together(self, verbs: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run every verb in a thread at the same moment; an exception is a result."""
        barrier = threading.Barrier(len(verbs))
        results: list[Any] = [None] * len(verbs)

        def run(number: int, verb: Callable[[], Any]) -> None:
            try:
                barrier.wait(timeout=_SECONDS)
                results[number] = verb()
            except Exception as error:  # noqa: BLE001  it is the verb's result
                results[number] = error
            finally:
                self.leave_thread()

        threads = [
            threading.Thread(target=run, args=(number, verb))
            for number, verb in enumerate(verbs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=_SECONDS)
        assert not any(thread.is_alive() for thread in threads)
        return results

    def elsewhere(self, program: str, *, killed: bool = False) -> str:
        """Run a program over the same store in a process of its own."""
        done = subprocess.run(  # noqa: S603  a program of these tests
            [sys.executable, "-c", f"{self.in_another_process()}\n{program}"],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        assert (done.returncode == -9) is killed, done.stderr
        assert killed or done.returncode == 0, done.stderr
        return done.stdout


def new_id() -> str:
    """Return an id that sorts by time and fits every store."""
    return str(uuid7())


def a_record(**changes: Any) -> InterruptRecord:
    """Return a record of a request in which every field says something."""
    args = changes.pop("args", {"order_id": "A-1", "amount": 12.5})
    interrupt_id = changes.pop("interrupt_id", None) or new_id()
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    request = ApprovalRequest(
        interrupt_id=interrupt_id,
        tool_name="issue_refund",
        tool_description="Refund an order.",
        args=args,
        args_schema={"type": "object", "properties": {}},
        digest=canonical.digest(canonical.dumps(args)),
        tool_call_id="call_1",
        agent="support",
        thread_id="thread 7",
        trip=2,
        original_input={"prompt": "Refund order A-1."},
        tags=("money",),
        why="The tool is on the list.",
        requested_at=now,
        journal=({"tool": "look_up", "occurrence": 1, "value": [1]},),
    )
    return InterruptRecord(
        interrupt_id=interrupt_id,
        request=replace(request, **changes),
        saved_at=now,
    )


def ids_of(records: Sequence[InterruptRecord]) -> set[str]:
    """Return the ids of records."""
    return {record.interrupt_id for record in records}


def is_claimed(seen: InterruptRecord | None, taken: InterruptRecord) -> bool:
    """Whether a store shows an interrupt as the one that was taken.

    Its key is the claimer's; a store may show a digest of it to everybody else.
    """
    return (
        seen is not None
        and bool(seen.key)
        and replace(seen, key=taken.key) == taken
        and seen.status == TAKEN
    )

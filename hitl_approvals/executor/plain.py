"""The in-process loop: a graph over a checkpoint store, without rows and workers.

Every move is a checkpoint whose id is made from the one before it. A store refuses an id
that it has, so of two that would make the same move one is refused before it does.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from uuid import uuid4

from hitl_approvals import canonical
from hitl_approvals.agents.recording import copied
from hitl_approvals.decisions import Reject, Respond
from hitl_approvals.exceptions import (
    AlreadyDecided,
    CheckpointConflict,
    InterruptNotFound,
    InterruptSuspended,
    TransitionNotAllowed,
    TurnNotFound,
)
from hitl_approvals.executor.outcome import NO_VALUE, ExecutionResult
from hitl_approvals.executor.plain_context import PlainContext, run_node
from hitl_approvals.executor.plain_moves import (
    answer,
    busy,
    finished,
    missing_value,
    question,
    told,
    without_unknown,
)
from hitl_approvals.graphs import Graph, Node
from hitl_approvals.stores.checkpoints import (
    ANSWER,
    END,
    LISTED,
    PAUSE,
    RECORD,
    START,
    Checkpoint,
    CheckpointStore,
)


class PlainExecution:
    """Runs a graph in this process, and keeps what it must in a store."""

    def __init__(self, graph: Graph, store: CheckpointStore) -> None:
        self._graph = graph
        self._store = store

    def run(self, given: Any, thread_id: str | None, **options: Any) -> ExecutionResult:
        """Run the graph on an input, to its first pause or its end.

        Raises:
            ThreadBusy: The thread has a run that is not over.
            TypeError: An option that needs Django's rows.
        """
        _refuse(options)
        thread_id = thread_id or str(uuid4())
        last = self._store.load(thread_id)
        if last is not None and last.kind != END:
            raise busy(thread_id)
        fresh = Checkpoint(
            id="",
            thread_id=thread_id,
            node=self._graph.names[0],
            pending_input=given,
            kind=START,
            record={"nodes": self._graph.names},
        )
        try:
            return self._go_on(self._append(last, fresh))
        except _Overtaken:
            raise busy(thread_id) from None

    def resume(
        self, thread_id: str, value: Any, interrupt_id: str | None, **options: Any
    ) -> ExecutionResult:
        """Answer what the thread waits for, or without a value go on after a crash.

        Raises:
            TurnNotFound: There is no such thread.
            AlreadyDecided: Somebody answered before.
            TypeError: The thread waits for a value and none was given.
        """
        _refuse(options)
        last = self._newest(thread_id)
        if value is NO_VALUE:
            if last.kind == PAUSE:
                raise missing_value(thread_id)
            if last.kind != END:
                last = self._take_over(last)
        else:
            if last.kind != PAUSE or interrupt_id not in (None, last.id):
                raise self._nothing_to_answer(thread_id, interrupt_id)
            last = self._claim(last, value)
        try:
            return self._go_on(last)
        except _Overtaken:
            raise busy(thread_id) from None

    def fork(self, thread_id: str, checkpoint_id: str | None, **options: Any) -> str:
        """Copy a checkpoint into a new thread and return that thread's id.

        Raises:
            TurnNotFound: There is no such thread.
            InterruptNotFound: The thread has no such checkpoint.
        """
        _refuse(options)
        past = self._past(thread_id, checkpoint_id)
        fork_id, last = str(uuid4()), None
        for source in past:
            # Through JSON: the fork shares nothing with its origin.
            copy = Checkpoint.from_json(source.to_json())
            record = without_unknown(copy.record) if source is past[-1] else copy.record
            made = copy.with_changes(thread_id=fork_id, record=record)
            last = self._append(last, made)
        return fork_id

    def list_checkpoints(self, thread_id: str) -> list[Checkpoint]:
        """Return every pause and every finished node of a thread, oldest first."""
        return [one for one in self._store.list(thread_id) if one.kind in LISTED]

    def result(self, thread_id: str) -> ExecutionResult:
        """Return where a thread stands.

        Raises:
            TurnNotFound: There is no such thread.
        """
        return told(self._newest(thread_id))

    def _go_on(self, last: Checkpoint) -> ExecutionResult:
        while last.kind not in (PAUSE, END):
            self._graph.require_same(last.record["nodes"], len(last.history))
            rest = self._graph.nodes[len(last.history) :]
            if rest:
                last = self._run_node(last, rest[0])
            else:
                last = self._append(last, last.with_changes(kind=END))
        return told(last)

    def _run_node(self, last: Checkpoint, node: Node) -> Checkpoint:
        record = {**last.record, "nodes": self._graph.names}
        head = [
            last.with_changes(node=node.name, interrupt_payload=None, record=record)
        ]

        def save(changed: Any) -> None:
            moved = head[0].with_changes(kind=RECORD, record=changed)
            try:
                head[0] = self._append(head[0], moved)
            except _Overtaken as overtaken:
                context.stopped = overtaken
                raise

        context = PlainContext(last.thread_id, node.name, last.state, record, save)
        try:
            output = run_node(node, copied(last.pending_input), context)
        except InterruptSuspended:
            if context.asked is None:
                raise  # Somebody else's stop: nobody could answer it here.
            paused = head[0].with_changes(kind=PAUSE, **question(context))
            return self._append(head[0], paused)
        return self._append(head[0], finished(head[0], node, output))

    def _claim(self, paused: Checkpoint, value: Any) -> Checkpoint:
        """Write the answer down; only one can, and only then the node goes on."""
        asked = paused.record["asked"]
        given = {"payload": asked["payload"], **answer(asked, value)}
        record = {name: one for name, one in paused.record.items() if name != "asked"}
        record["answers"] = {**record.get("answers", {}), asked["label"]: given}
        claimed = paused.with_changes(kind=ANSWER, interrupt_payload=None)
        try:
            return self._append(paused, claimed.with_changes(record=record))
        except _Overtaken:
            raise self._nothing_to_answer(paused.thread_id, paused.id) from None

    def _take_over(self, last: Checkpoint) -> Checkpoint:
        """Make whoever may still run this thread fail at its next move."""
        try:
            return self._append(last, last.with_changes(kind=RECORD))
        except _Overtaken:
            raise busy(last.thread_id) from None

    def _append(self, last: Checkpoint | None, moved: Checkpoint) -> Checkpoint:
        """Save the next checkpoint of a thread.

        Raises:
            _Overtaken: Another process has made this move.
        """
        before = "" if last is None else last.id
        place = 1 if last is None else last.position + 1
        written = Checkpoint(
            **{
                **{name: getattr(moved, name) for name in _COPIED},
                "id": canonical.key_digest("checkpoint", moved.thread_id, before),
                "position": place,
            }
        )
        try:
            self._store.save(written)
        except CheckpointConflict as conflict:
            raise _Overtaken from conflict
        return written

    def _newest(self, thread_id: str) -> Checkpoint:
        last = self._store.load(thread_id)
        if last is None:
            raise TurnNotFound(f"There is no thread {thread_id!r} in this store.")
        return last

    def _past(self, thread_id: str, checkpoint_id: str | None) -> list[Checkpoint]:
        """Return what a fork takes over: the run of its point, up to there."""
        past: list[Checkpoint] = []
        for one in self._store.list(thread_id):
            if one.kind == START:
                past = []
            elif one.kind in LISTED:
                past.append(one)
            if one.id == checkpoint_id and one.kind in LISTED:
                return past
        if not past:
            raise TurnNotFound(f"Thread {thread_id!r} has nothing to fork from.")
        if checkpoint_id is not None:
            raise InterruptNotFound(
                f"Thread {thread_id!r} has no checkpoint {checkpoint_id!r}."
            )
        pauses = [place for place, one in enumerate(past) if one.kind == PAUSE]
        return past[: pauses[-1] + 1] if pauses else past

    def _nothing_to_answer(
        self, thread_id: str, interrupt_id: str | None
    ) -> AlreadyDecided | TransitionNotAllowed | InterruptNotFound:
        """Return the error that says who answered, and when."""
        all_ = self._store.list(thread_id)
        known = {one.id for one in all_ if one.kind == PAUSE}
        if interrupt_id is not None and interrupt_id not in known:
            return InterruptNotFound(
                f"Thread {thread_id!r} has no interrupt {interrupt_id!r}."
            )
        for before, one in reversed([*pairwise(all_)]):
            if one.kind == ANSWER and interrupt_id in (None, before.id):
                label = before.record["asked"]["label"]
                refused = "refused" in one.record["answers"][label]
                when = one.created_at.isoformat(timespec="seconds")
                return AlreadyDecided(
                    f"Somebody already answered this at {when}; your answer was not "
                    "recorded and ran nothing.",
                    interrupt_id=before.id,
                    decision=Reject.type if refused else Respond.type,
                    decided_at=one.created_at,
                )
        return TransitionNotAllowed(f"Nothing waits for an answer in {thread_id!r}.")


class _Overtaken(Exception):
    """Another process has taken the next step of this thread."""


_COPIED = (
    "thread_id",
    "node",
    "interrupt_payload",
    "state",
    "history",
    "pending_input",
    "kind",
    "record",
)
"""Everything but what tells one checkpoint from the next: id, place, time."""


def _refuse(options: dict[str, Any]) -> None:
    """Raise for what only the rows can honor.

    Raises:
        TypeError: An option was given.
    """
    for name in options:
        raise TypeError(f"{name}= needs Django's rows; leave out store=.")

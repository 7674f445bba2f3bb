"""A saver as one run of a graph uses it: what comes together is saved together."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from asgiref.sync import sync_to_async
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
)

from hitl_approvals.checkpoints.rows import Place
from hitl_approvals.checkpoints.translating import config_of, place_of

if TYPE_CHECKING:
    from hitl_approvals.checkpoints.saver import DjangoCheckpointSaver

VERBS = (
    "get_tuple",
    "put",
    "put_writes",
    "delete_thread",
    # Of one run.
    "get_next_version",
    "aget_tuple",
    "aput",
    "aput_writes",
    "adelete_thread",
)
"""A saver that has one of these by another class is used as it is."""
_REPLACED = VERBS[4:]
# Made once: it costs as much as a part of the way there.
_in_worker = sync_to_async(operator.call, thread_sensitive=True)


class Put(NamedTuple):
    """What `put` is called with."""

    config: RunnableConfig
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    new_versions: ChannelVersions


class PutWrites(NamedTuple):
    """What `put_writes` is called with."""

    config: RunnableConfig
    writes: Sequence[tuple[str, Any]]
    task_id: str
    task_path: str = ""


@dataclass(eq=False, slots=True)
class _Waiting:
    """Writes that wait for the checkpoint that is being made of them."""

    given: PutWrites
    step: int
    """How many supersteps were over when it was written."""
    before: Put | None = None
    """The checkpoint that it was written after, if that is not saved either."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    saved: bool = False


class OneRun:
    """A copy of a saver for one run, whose coroutines all belong to one event loop.

    A superstep ends with what its last task wrote, and the next checkpoint at once: both
    are saved by one transaction. What a task wrote while others are under way is saved
    alone and at once, as ever: they may die long after. A graph that takes its input
    comes to the end of the first superstep before it lets go: that is saved with it.

    What is read for the run to find its place is what the graph begins with.
    """

    def __init__(self, saver: DjangoCheckpointSaver, *, joins: bool) -> None:
        self.saver: Any = copy(saver)
        self._plain = saver
        self._steps = 0
        """How often the graph has begun to make a checkpoint of what was written."""
        self._written: list[_Waiting] = []
        """Writes whose saving was asked for and has not begun."""
        self._waiting: list[_Waiting] = []
        self._puts: dict[Place, asyncio.Event] = {}
        """The checkpoints that are being saved, by their place."""
        self._keeps = False
        self._kept: tuple[Any, Callable[[], CheckpointTuple | None]] | None = None
        if joins:
            for verb in _REPLACED:
                setattr(self.saver, verb, getattr(self, f"_{verb}"))

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep what is read in here last: it answers the same question once more."""
        self._keeps = True
        try:
            yield
        finally:
            self._keeps = False

    def forget(self) -> None:
        """Let the next question be asked, though the answer is at hand."""
        self._kept = None

    async def _aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        asked = _named(config)
        kept, self._kept = self._kept, None
        if kept is None or kept[0] != asked:
            kept = asked, await _in_worker(self._plain.read, config)
            if self._keeps:
                self._kept = kept
        # Made anew: the graph changes what it is handed.
        return kept[1]()

    def _get_next_version(self, current: str | None, channel: None) -> str:
        # LangGraph asks for one when all tasks of a superstep are over, and goes on to
        # the checkpoint without waiting for anything.
        self._steps += 1
        return self._plain.get_next_version(current, channel)

    def _aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> Coroutine[Any, Any, None]:
        self._kept = None
        one = _Waiting(PutWrites(config, writes, task_id, task_path), self._steps)
        # Called when the task is over; what it returns begins when the graph lets go.
        self._written.append(one)
        return self._save_writes(one)

    async def _save_writes(self, one: _Waiting) -> None:
        self._written.remove(one)
        if self._ends_a_step(one):
            self._waiting.append(one)
            # The checkpoint was asked for by now. It begins next, or after the one that
            # is being saved: these writes would come after that as well.
            if (before := self._puts.get(place_of(one.given.config))) is not None:
                await before.wait()
            await asyncio.sleep(0)
            if one in self._waiting:
                self._waiting.remove(one)
            else:
                await one.over.wait()
        # What a task wrote is kept even if the step that it ended could not be.
        if not one.saved:
            await _in_worker(self._put_writes, one)

    def _ends_a_step(self, one: _Waiting) -> bool:
        special = any(channel in WRITES_IDX_MAP for channel, _ in one.given.writes)
        # An error, an interrupt or an answer replaces another one: not together.
        return one.step != self._steps and not special

    async def _aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        self._kept = None
        put = Put(config, checkpoint, metadata, new_versions)
        place, parent = _named(config)
        waiting = self._that_name(self._waiting, place, parent)
        self._waiting = [one for one in self._waiting if one not in waiting]
        after = self._that_name(self._written, place, checkpoint["id"])
        if not waiting and after and all(self._ends_a_step(one) for one in after):
            after[0].before = put
            named: str = config["configurable"]["thread_id"]
            return config_of(named, place.checkpoint_ns, checkpoint["id"])
        self._puts[place] = over = asyncio.Event()
        try:
            return await _in_worker(self._put_step, put, waiting)
        finally:
            self._puts.pop(place, None)
            over.set()
            for one in waiting:
                one.over.set()

    @staticmethod
    def _that_name(
        some: Sequence[_Waiting], place: Place, checkpoint_id: str | None
    ) -> list[_Waiting]:
        named = place, checkpoint_id
        return [one for one in some if _named(one.given.config) == named]

    # In the worker's own thread

    def _put_step(self, put: Put, waiting: Sequence[_Waiting]) -> RunnableConfig:
        if not waiting:
            return self._plain.put(*put)
        puts = [one.before for one in waiting if one.before is not None]
        saved = self._plain.put_step([*puts, put], [one.given for one in waiting])
        for one in waiting:
            one.saved = True
        return saved

    def _put_writes(self, one: _Waiting) -> None:
        if one.before is not None:
            self._plain.put(*one.before)
        self._plain.put_writes(*one.given)

    async def _adelete_thread(self, thread_id: str) -> None:
        self._kept = None
        await _in_worker(self._plain.delete_thread, thread_id)


def _named(config: RunnableConfig) -> tuple[Place, str | None]:
    return place_of(config), get_checkpoint_id(config) or None

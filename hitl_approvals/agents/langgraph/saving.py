"""The checkpointer of a graph, as one run of a turn uses it."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import wraps
from typing import Any

from hitl_approvals.agents.framework import FrameworkTurn

COROUTINES = ("aget_tuple", "aput", "aput_writes", "adelete_thread")
ROOT = {"checkpoint_ns": ""}


class Saving:
    """A copy of a checkpointer for one run, and where the run's last checkpoint is.

    The copy refuses a checkpoint once the run has to end: a graph that swallowed the
    reason, or a worker that lost its turn, does not get past what it should wait for.
    """

    def __init__(self, saver: Any, turn: FrameworkTurn) -> None:
        # Ours knows how to serve one run; another one is used as it is.
        self._one_run = saver.one_run() if hasattr(saver, "one_run") else None
        self.saver = copy(saver) if self._one_run is None else self._one_run.saver
        self.head: str | None = None
        """Id of the newest checkpoint of the graph itself."""
        self._turn = turn
        self._put, self._aput = self.saver.put, self.saver.aput
        self.saver.put, self.saver.aput = self._checked, self._achecked

    def keeping(self) -> AbstractContextManager[None]:
        """Let the graph begin with what is read in here, and not read it again.

        A run alone writes its thread, and what others write after the graph has read it
        goes unnoticed anyway.
        """
        return nullcontext() if self._one_run is None else self._one_run.keeping()

    def forget(self) -> None:
        """Let the graph read what it begins with: much time may have passed."""
        if self._one_run is not None:
            self._one_run.forget()

    def _checked(self, config: Any, *args: Any) -> Any:
        # A graph that a node invokes by itself saves so, on threads of its own.
        self._turn.require_alive()
        return self._put(config, *args)

    async def _achecked(self, config: Any, *args: Any) -> Any:
        self._turn.require_alive()
        saved = await self._aput(config, *args)
        if not saved["configurable"].get("checkpoint_ns"):
            self.head = saved["configurable"]["checkpoint_id"]
        return saved


async def awaitable(saver: Any) -> Any:
    """Return a checkpointer whose coroutines work: one without is called in threads."""
    kind = type(saver)
    if kind not in _plain:
        try:
            await saver.aget_tuple({"configurable": {"thread_id": "hitl", **ROOT}})
        except NotImplementedError:
            _plain[kind] = True
        else:
            _plain[kind] = False
    return _in_threads(saver) if _plain[kind] else saver


_plain: dict[type, bool] = {}
"""Whether a class of checkpointers is a plain one, as far as they were tried."""


def _in_threads(saver: Any) -> Any:
    own = copy(saver)
    for name in COROUTINES:
        setattr(own, name, _threaded(getattr(saver, name.removeprefix("a"))))

    async def alist(*args: Any, **kwargs: Any) -> Any:
        for one in await asyncio.to_thread(lambda: list(saver.list(*args, **kwargs))):
            yield one

    own.alist = alist
    return own


def _threaded(function: Any) -> Any:
    @wraps(function)
    async def called(*args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(function, *args, **kwargs)

    return called

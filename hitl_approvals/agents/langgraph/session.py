"""One run of a graph: brings tool calls from whatever thread to the worker's own."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, NoReturn

from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.runtime import get_runtime
from langgraph.types import Interrupt

from hitl_approvals.agents.framework import FrameworkTurn, in_worker
from hitl_approvals.agents.langgraph.messages import Reply, find_reply
from hitl_approvals.exceptions import HitlConfigurationError
from hitl_approvals.gate.framework import Asked
from hitl_approvals.registry import Tool

OURS = "hitl_approvals"
"""`type` in the value of the interrupts that this module raises."""
OVER = "The run that this call belongs to is over; the call did not run."


class Session:
    """The gate as the nodes and tools of one run of a graph see it.

    LangGraph runs coroutines on its event loop and plain functions in threads of a pool.
    The gate belongs to the worker's own thread: every call is taken there. It is the
    `current_gate` of the run, so tools that nodes call as functions come here as well.
    """

    def __init__(self, turn: FrameworkTurn, known: Sequence[Asked] = ()) -> None:
        """Open the session of a run, on its event loop.

        Args:
            turn: The turn.
            known: The calls that were asked for before, as they were asked.
        """
        self._turn = turn
        self._loop = asyncio.get_running_loop()
        self._underway: set[asyncio.Task[Any]] = set()
        self._counts: Counter[tuple[Any, ...]] = Counter()
        self._counting = threading.Lock()
        self._known = {_place(one): one for one in known}
        self._over = False
        self.round = 0
        """How often the graph was run in this run of the turn."""

    async def drained(self, *, over: bool = False) -> None:
        """Wait for the calls under way, which LangGraph may not have waited for."""
        self._over = self._over or over
        while self._underway:
            await asyncio.wait(set(self._underway))

    # Calls of a model, from the bodies of tools

    def asked(
        self,
        tool: Tool[Any, Any],
        args: Mapping[str, Any],
        runtime: Any,
        call_id: str | None,
    ) -> tuple[Asked, Reply | None]:
        """Return a call as it was first asked for, and the reply that holds it."""
        found = None
        if runtime is not None:
            call_id = runtime.tool_call_id
            found = find_reply(runtime.state, call_id) if call_id else None
        if call_id is None:
            return self._from_node(tool, dict(args)), None
        origin, ordinal = (found.origin if found is not None else ""), 1
        if found is not None:
            index = found.index_of(call_id, tool.name, dict(args))
            ordinal = 1 if index is None else found.ordinal(index)
        asked = Asked(
            id=call_id,
            name=tool.name,
            args=dict(args),
            origin=origin or f"task:{_namespace()}",
            ordinal=ordinal,
        )
        # A reviewer's edit has reached the body by now; the record holds what was asked.
        return self._known.get(_place(asked), asked), found

    def know(self, asked: Asked) -> None:
        """Remember how a call was asked for, whatever its body is handed later."""
        self._known.setdefault(_place(asked), asked)

    async def call(self, asked: tuple[Asked, Reply | None]) -> dict[str, Any]:
        """Bring a call to the gate; on the event loop.

        Raises:
            GraphInterrupt: A person has to decide, or the run has to end.
        """
        message: dict[str, Any] = await self._through(self._answer, *asked)
        return message

    def call_blocking(self, asked: tuple[Asked, Reply | None]) -> dict[str, Any]:
        """Bring a call to the gate; from a thread of LangGraph's.

        Raises:
            GraphInterrupt: A person has to decide, or the run has to end.
        """
        message: dict[str, Any] = self._bridged(self._answer, *asked)
        return message

    # Tools that a node calls as plain functions

    def call_function(self, tool: Tool[Any, Any], args: dict[str, Any]) -> Any:
        """Run a tool that was called as a plain function inside a node.

        Raises:
            ApprovalRejected: It did not run; the text says why.
            GraphInterrupt: A person has to decide, or the run has to end.
        """
        read: Any = tool.signature.dump_args(tool.signature.coerce(args))
        return self._bridged(self._value, tool, self._from_node(tool, read))

    def _from_node(self, tool: Tool[Any, Any], args: Any) -> Asked:
        """Return a call that no model made: known by its node and its order there."""
        namespace = _namespace()
        with self._counting:
            counted = (self.round, namespace, _attempt(), tool.name)
            self._counts[counted] += 1
            ordinal = self._counts[counted]
        return Asked(
            id="",
            name=tool.name,
            args=args,
            origin=f"task:{namespace}",
            ordinal=ordinal,
        )

    # In the worker's own thread

    def _answer(self, asked: Asked, reply: Reply | None) -> dict[str, Any]:
        messages = None
        if reply is not None and _place(asked) not in self._known:
            messages = reply.conversation()
            self._turn.line_up(*reply.all_asked())
        if self._turn.offer(asked, messages=messages):
            _pause(asked)
        return self._turn.perform(asked, messages=messages)[0]

    def _value(self, tool: Tool[Any, Any], asked: Asked) -> Any:
        if self._turn.offer(asked):
            _pause(asked)
        return self._turn.value_of(tool, asked)

    def _guarded(self, work: Any, *args: Any) -> Any:
        if self._over:
            raise RuntimeError(OVER)
        try:
            return work(*args)
        except GraphInterrupt:
            raise
        except Exception as error:
            if self._turn.stopped is None:
                raise
            # LangGraph must not take it for a failed node: the node is run again in the
            # next run, its siblings end, and nobody can make a tool result of it.
            _stop(error)

    # Between the threads

    async def _through(self, work: Any, *args: Any) -> Any:
        if self._over:
            raise RuntimeError(OVER)
        task = self._loop.create_task(in_worker(self._guarded, work, *args))
        self._underway.add(task)
        task.add_done_callback(self._underway.discard)
        # LangGraph cancels the siblings of a failed node: a call under way is not
        # cancelled in its middle, or nobody would know what became of it.
        return await asyncio.shield(task)

    def _bridged(self, work: Any, *args: Any) -> Any:
        if threading.get_ident() == self._turn.thread_ident:
            return self._guarded(work, *args)
        running = None
        with suppress(RuntimeError):
            running = asyncio.get_running_loop()
        if running is self._loop:
            raise HitlConfigurationError(
                "A tool was called synchronously inside a coroutine of the graph. Await "
                "it: `await tool.ainvoke(...)`, or make the node a plain function."
            )
        future = asyncio.run_coroutine_threadsafe(
            self._through(work, *args), self._loop
        )
        return future.result()


def _place(asked: Asked) -> tuple[str, str, int]:
    return asked.origin, asked.id, asked.ordinal


def _pause(asked: Asked) -> NoReturn:
    """Pause the task in LangGraph's way.

    `interrupt()` would count this pause among those of the node and hand the answer to
    one of them to another; ours needs no answer, only to be run again.
    """
    named = "\x1f".join((asked.origin, asked.id, asked.name, str(asked.ordinal)))
    raise GraphInterrupt(
        (
            Interrupt(
                value={"type": OURS, "tool": asked.name, "tool_call_id": asked.id},
                id=sha256(named.encode()).hexdigest()[:32],
            ),
        )
    )


def _stop(error: Exception) -> NoReturn:
    raise GraphInterrupt(
        (Interrupt(value={"type": OURS, "stopped": type(error).__name__}, id="0" * 32),)
    ) from error


def _namespace() -> str:
    """Return the name of the task that is under way, the same in each run of it."""
    try:
        return str(get_config()["configurable"].get("checkpoint_ns", ""))
    except (RuntimeError, KeyError):
        return ""


def _attempt() -> int:
    """Return which attempt of its node this is: a retry counts its calls anew."""
    try:
        info = get_runtime().execution_info
    except (RuntimeError, KeyError):
        return 1
    return 1 if info is None else info.node_attempt

"""AsyncTurn: the turn that an async agent is handed. The same verbs, awaited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async

from hitl_approvals.agents.turn import Turn
from hitl_approvals.registry import Tool


class AsyncTurn:
    """Wraps a `Turn`: each verb runs in the worker's own thread, with its connection."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    @property
    def id(self) -> UUID:
        """Primary key of the turn."""
        return self._turn.id

    @property
    def thread_id(self) -> str:
        """The conversation that the turn belongs to."""
        return self._turn.thread_id

    @property
    def execute_options(self) -> Any:
        """What `start_turn(execute_options=...)` was given."""
        return self._turn.execute_options

    @property
    def deadline(self) -> datetime | None:
        """Inside a tool: when its call must be over. None elsewhere."""
        return self._turn.deadline

    async def step(
        self,
        name: str,
        fn: Callable[..., Any],
        /,
        *args: Any,
        result_type: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Await `Turn.step`; `fn` may be async."""
        run = sync_to_async(self._turn.step, thread_sensitive=True)
        return await run(name, fn, *args, result_type=result_type, **kwargs)

    async def once(self, key: str, fn: Callable[[], Any]) -> Any:
        """Await `Turn.once`; `fn` may be async."""
        return await sync_to_async(self._turn.once, thread_sensitive=True)(key, fn)

    async def call_tools(
        self,
        calls: Sequence[Any],
        *,
        messages: Sequence[Any] | None = None,
        reason: str | None = None,
    ) -> list[dict[str, Any]]:
        """Await `Turn.call_tools`; the tools may be async."""
        run = sync_to_async(self._turn.call_tools, thread_sensitive=True)
        return await run(calls, messages=messages, reason=reason)

    async def call_tool(
        self,
        tool: Tool[Any, Any] | str,
        args: Mapping[str, Any] | str,
        *,
        id: str | None = None,  # noqa: A002  the word of every model API
        messages: Sequence[Any] | None = None,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Await `Turn.call_tool`; the tool may be async."""
        run = sync_to_async(self._turn.call_tool, thread_sensitive=True)
        return await run(tool, args, id=id, messages=messages, reason=reason)

    async def interrupt(
        self,
        payload: Any,
        *,
        response_schema: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Any:
        """Await `Turn.interrupt`."""
        run = sync_to_async(self._turn.interrupt, thread_sensitive=True)
        return await run(payload, response_schema=response_schema, key=key)

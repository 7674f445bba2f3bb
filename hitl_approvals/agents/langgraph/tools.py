"""Our tools in LangChain's type. Their bodies run nothing: they go to the gate."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.prebuilt import ToolRuntime

from hitl_approvals import results
from hitl_approvals.agents.langgraph.session import Session
from hitl_approvals.awaiting import awaited
from hitl_approvals.registry import Tool, current_gate

INJECTED = "hitl_runtime"
_call_id: ContextVar[str | None] = ContextVar("hitl_langchain_call", default=None)
"""Id of the call that LangChain is handing to a tool, where no `ToolNode` does it."""


class GatedTool(StructuredTool):
    """A tool of ours as LangChain sees it: its name, its schema, and the way to the gate."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002
        """Run the tool; keeps the call's id for the gate."""
        token = _call_id.set(_id_in(input))
        try:
            return super().invoke(input, config, **kwargs)
        finally:
            _call_id.reset(token)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002
        """Run the tool; keeps the call's id for the gate."""
        token = _call_id.set(_id_in(input))
        try:
            return await super().ainvoke(input, config, **kwargs)
        finally:
            _call_id.reset(token)

    def _run(self, **kwargs: Any) -> Any:
        # LangChain's own passes `config` on, and a tool may have an argument of that name.
        return self.func(**kwargs)

    async def _arun(self, **kwargs: Any) -> Any:
        return await self.coroutine(**kwargs)


def as_langchain(tool: Tool[Any, Any]) -> GatedTool:
    """Return a tool of ours in LangChain's own type."""

    def body(*, hitl_runtime: ToolRuntime = None, **args: Any) -> Any:
        session = current_gate.get()
        if not isinstance(session, Session):
            # No turn is running: the tool itself knows whether that is allowed.
            return awaited(tool, **tool.signature.coerce(args))
        asked = session.asked(tool, args, hitl_runtime, _call_id.get())
        return _told(session.call_blocking(asked))

    async def coroutine(*, hitl_runtime: ToolRuntime = None, **args: Any) -> Any:
        session = current_gate.get()
        if not isinstance(session, Session):
            result = tool(**tool.signature.coerce(args))
            return await result if tool.is_async else result
        asked = session.asked(tool, args, hitl_runtime, _call_id.get())
        return _told(await session.call(asked))

    schema = {"properties": {}, **tool.signature.args_schema}
    return GatedTool(
        name=tool.name,
        description=tool.description or tool.name,
        args_schema=schema,
        func=body,
        coroutine=coroutine,
    )


def _id_in(given: Any) -> str | None:
    if isinstance(given, Mapping) and given.get("type") == "tool_call":
        return given.get("id")
    return None


def _told(message: Mapping[str, Any]) -> Any:
    call_id = _call_id.get()
    if call_id is None:
        return message["content"]
    return ToolMessage(
        message["content"],
        tool_call_id=call_id,
        name=message["name"],
        status="success" if message["status"] == results.OK else "error",
    )

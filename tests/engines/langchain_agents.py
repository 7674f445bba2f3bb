"""Agents and middleware of LangChain for the tests; the raw graphs do without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain.agents.middleware import HumanInTheLoopMiddleware as Review
from langchain_core.messages import ToolMessage

from tests.engines.langgraph_graphs import playing


def react(
    replies: Sequence[Any], middleware: Sequence[Any] = (), **options: Any
) -> Callable[[list[Any]], Any]:
    """Return the factory of an agent of LangChain."""

    def factory(tools: list[Any]) -> Any:
        return create_agent(playing(replies), tools, middleware=middleware, **options)

    return factory


def review(
    mode: str, decisions: Sequence[str] = ("approve", "edit", "reject"), **tools: Any
) -> Review:
    named = tools or dict.fromkeys(("pay", "mail", "judged", "note"))
    return Review(
        {name: {"allowed_decisions": list(decisions)} for name in named},
        interrupt_mode=mode,
    )


class Jump(AgentMiddleware):
    """Sends every call to the tools, whoever was going to be asked first."""

    @hook_config(can_jump_to=["tools"])
    def after_model(self, state: Any, runtime: Any) -> Any:
        last = state["messages"][-1]
        calls = getattr(last, "tool_calls", None)
        return {"jump_to": "tools"} if calls else None


class Swallow(AgentMiddleware):
    """Makes a tool result of whatever stops a tool."""

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except Exception as error:  # noqa: BLE001  that is what it is here for
            return ToolMessage(
                f"all is well ({error})", tool_call_id=request.tool_call["id"]
            )


class Change(AgentMiddleware):
    """Changes an argument on the way to the tool."""

    def __init__(self, **args: Any) -> None:
        super().__init__()
        self.args = args

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = request.tool_call
        changed = {**call, "args": {**call["args"], **self.args}}
        return await handler(request.override(tool_call=changed))


class Fail(AgentMiddleware):
    """Fails once, after the tool has answered."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = [ConnectionError("away")]

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        told = await handler(request)
        if self.failures:
            raise self.failures.pop()
        return told

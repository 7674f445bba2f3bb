"""Our tools as Pydantic AI's: their bodies are the gate, whatever leads to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NoReturn

import pydantic_ai
from pydantic_ai import ApprovalRequired, RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.native_tools import AbstractNativeTool
from pydantic_ai.tools import ToolDefinition
from pydantic_core import from_json

from hitl_approvals import results
from hitl_approvals.agents.framework import FrameworkTurn, in_worker
from hitl_approvals.agents.pydantic_ai import GATED, UNGATED
from hitl_approvals.agents.pydantic_ai.visit import Visit, visiting
from hitl_approvals.exceptions import NotInTurn, RunDiverged
from hitl_approvals.registry import Tool

NEVER = 10.0 * 365 * 24 * 3600
"""Seconds after which Pydantic AI may give a call up: the gate has a time of its own,
and a call that is told to have timed out would still run and be recorded."""
OF_THE_FRAMEWORK = ("tool-search", "capability-load")
"""Kinds of tools by which a model only finds other tools."""
FAR_OF_THE_FRAMEWORK = ("tool_search",)
"""The same among those that a provider runs."""


def gated(tool: Tool[Any, Any]) -> pydantic_ai.Tool[Any]:
    """Return a tool for `Agent(tools=...)` whose body goes through the gate of a turn."""

    async def body(context: RunContext[Any], /, **_given: Any) -> str:
        # What is given may be edited already: the gate wants the model's own arguments
        # and knows the edit from its row.
        visit = visiting.get()
        if visit is None:
            raise NotInTurn(
                f"`{tool.name}` belongs to an agent of this package, and no turn is "
                "running here. Start one with `start_turn`."
            )
        asked = visit.entered(context, tool)
        message, why = await in_worker(visit.answer, asked, list(context.messages))
        if message is None:
            raise ApprovalRequired(metadata=why)
        content: str = message["content"]
        if message["status"] == results.ERROR:
            raise ToolFailed(content)
        return content

    made = pydantic_ai.Tool.from_schema(
        body,
        name=tool.name,
        description=tool.description,
        # A copy: a model's own dialect may be made of it in place.
        json_schema=deepcopy(tool.signature.args_schema),
        takes_ctx=True,
    )
    made.function_schema.validator = _Unchecked()
    made.metadata = {GATED: True}
    return made


def require_known(tools: Iterable[ToolDefinition], visit: Visit) -> None:
    """Refuse an agent with tools that no gate stands before, unless the site wants so.

    Raises:
        RunDiverged: It has one; the text names it.
    """
    foreign = []
    for one in tools:
        marks = one.metadata or {}
        if marks.get(GATED) or one.kind == "output":
            continue
        if one.name in visit.names:
            visit.turn.stop(
                RunDiverged(
                    f"The agent has another tool called `{one.name}`; that is a gated "
                    "one's name. Rename it."
                )
            )
        if not marks.get(UNGATED) and one.tool_kind not in OF_THE_FRAMEWORK:
            foreign.append(one.name)
    if foreign:
        refuse(
            foreign, visit.turn, "Make it a tool with `@tool` and name it in `tools=`"
        )


def never_given_up(tool: ToolDefinition) -> ToolDefinition:
    """Return a tool with no time after which the framework gives up a gated call."""
    is_ours = (tool.metadata or {}).get(GATED)
    return replace(tool, timeout=NEVER) if is_ours else tool


def require_known_far(tools: Iterable[AbstractNativeTool], turn: FrameworkTurn) -> None:
    """Refuse tools that the model's provider runs, unless the site wants so.

    Raises:
        RunDiverged: There is one; the text names its kind.
    """
    foreign = [
        one.kind
        for one in tools
        if not hasattr(one, UNGATED) and one.kind not in FAR_OF_THE_FRAMEWORK
    ]
    if foreign:
        refuse(foreign, turn, "The model's provider runs it: take it out")


def refuse(names: Sequence[str], turn: FrameworkTurn, remedy: str) -> NoReturn:
    """Stop a turn for what no gate stands before.

    Raises:
        RunDiverged: Always.
    """
    listed = ", ".join(f"`{name}`" for name in names)
    turn.stop(
        RunDiverged(
            f"No gate stands before {listed}, so the agent is not run. {remedy} of the "
            "agent, or say that nobody has to be asked: `ungated(...)` of "
            "`hitl_approvals.agents.pydantic_ai`."
        )
    )


class NoPlainCalls:
    """Stands where a turn's gate stands for code that calls tools as plain functions.

    Such code runs in threads of the framework's and again in each run: nothing could
    tell its calls apart.
    """

    def __init__(self, turn: FrameworkTurn) -> None:
        self._turn = turn

    def call_function(self, tool: Tool[Any, Any], args: dict[str, Any]) -> Any:
        """Refuse.

        Raises:
            RunDiverged: Always.
        """
        self._turn.stop(
            RunDiverged(
                f"`{tool.name}` was called as a plain function inside of an agent of "
                "Pydantic AI; it did not run. Name it in `tools=` of the agent, so that "
                f"the model calls it, or write `{tool.name}.unguarded(...)` if nobody has "
                "to be asked."
            )
        )


class _Unchecked:
    """Lets any arguments through: what does not fit, the gate tells the model.

    Without it a text that is no JSON would cost the tool one of its retries, and JSON
    that is no object would end the run.
    """

    def validate_json(self, given: str | bytes, **_options: Any) -> dict[str, Any]:
        try:
            return self.validate_python(from_json(given or "{}"))
        except ValueError:
            return {}

    def validate_python(self, given: Any, **_options: Any) -> dict[str, Any]:
        return dict(given) if isinstance(given, dict) else {}

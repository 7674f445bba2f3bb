"""Builds the SDK's agent with gated tools, and refuses what no gate would stand before."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    Handoff,
    Model,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
    function_tool,
)

from hitl_approvals.agents.openai_agents import UNGATED
from hitl_approvals.agents.openai_agents.performing import own_performance, performance
from hitl_approvals.agents.openai_agents.recorded import Recorded
from hitl_approvals.exceptions import RunDiverged
from hitl_approvals.registry import AgentDefinition, Tool


class Body:
    """Runs a tool for the SDK: always through the gate of the turn."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def __call__(self, context: Any, arguments: str) -> str:
        """Return what the model is told of the call."""
        run = own_performance(self.name)
        return await run.perform(context.tool_call_id, self.name)

    async def needs_approval(
        self, context: Any, arguments: dict[str, Any], call_id: str
    ) -> bool:
        """Tell the SDK whether to wait for a person."""
        return await own_performance(self.name).offer(call_id, self.name)


class Heeded(ToolInputGuardrail[Any]):
    """A guardrail of the site, whose refusal the turn is told of."""

    def __init__(self, guardrail: ToolInputGuardrail[Any]) -> None:
        super().__init__(guardrail.run, guardrail.name)
        self._guardrail = guardrail

    def get_name(self) -> str:
        return str(self._guardrail.get_name())

    async def run(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        """Return what the guardrail says of a call; it is not asked about one on record.

        That one has run, and the model must not be told that it did not.
        """
        run, call_id = performance(), data.context.tool_call_id
        if run is not None and await run.has_run(call_id):
            return ToolGuardrailFunctionOutput.allow()
        said = await super().run(data)
        if run is not None and said.behavior["type"] == "reject_content":
            run.refused_by_guardrail(call_id)
        return said


def gated(tool: Tool[Any, Any]) -> FunctionTool:
    """Return a tool of ours as one of the SDK's."""

    async def template() -> str:
        raise NotImplementedError

    body = Body(tool.name)
    # No failure_error_function: it would turn our stops into a text for the model.
    made = function_tool(
        template,
        name_override=tool.name,
        description_override=tool.description,
        failure_error_function=None,
        strict_mode=False,
    )
    return replace(
        made,
        params_json_schema=copy.deepcopy(tool.signature.args_schema),
        on_invoke_tool=body,
        needs_approval=body.needs_approval,
    )


def built(definition: AgentDefinition) -> Agent[Any]:
    """Return the agent that a definition's target makes of its tools.

    Raises:
        RunDiverged: It cannot be run; the text says what to change.
    """
    made = definition.target([gated(tool) for tool in definition.tools.values()])
    if not isinstance(made, Agent):
        raise RunDiverged(
            f"Agent `{definition.name}`: its function returned {type(made).__name__}; it "
            "has to take the tools and return an agents.Agent."
        )
    for agent in reachable(made):
        _refuse_ungated(agent, definition)
        _settle(agent)
        if isinstance(agent.model, Model) and not isinstance(agent.model, Recorded):
            agent.model = Recorded(agent.model)
    return made


def require_found(
    agents: Sequence[Agent[Any]],
    definition: AgentDefinition,
    tools: Iterable[Any],
    handoffs: Iterable[Handoff[Any, Any]],
) -> None:
    """Refuse what an agent has been given since it was built, as nobody looked at it.

    Args:
        agents: All that could be reached when it was built.
        definition: Theirs.
        tools: What a model is about to be told of.
        handoffs: As well.

    Raises:
        RunDiverged: There is something new, and no gate would stand before it.
    """
    known = {id(agent) for agent in agents}
    for handoff in handoffs:
        if id(_target(handoff, agents[0])) not in known:
            raise _newcomer(handoff.tool_name)
    servers = [server for agent in agents for server in agent.mcp_servers]
    for server in servers:
        if not getattr(server, UNGATED, False):
            raise _newcomer(server.name)
    for one in tools:
        inner = agent_inside(one)
        if is_gated(one) or (inner is not None and id(inner) in known):
            continue
        if one.name in definition.tools:
            raise RunDiverged(
                f"An agent was given another tool called `{one.name}`; that is a gated "
                "one's name. Rename it."
            )
        origin = getattr(one, "_tool_origin", None)
        is_served = servers and getattr(origin, "mcp_server_name", None)
        if not is_served and not getattr(one, UNGATED, False):
            raise _newcomer(one.name)


def _newcomer(name: str) -> RunDiverged:
    return RunDiverged(
        f"`{name}` came to an agent while it ran, and no gate stands before it. Give the "
        "agent what it needs in the function that makes it."
    )


def reachable(first: Agent[Any]) -> Iterator[Agent[Any]]:
    """Yield an agent and all that it can hand over to or use as a tool.

    Raises:
        RunDiverged: Which agent a handoff leads to cannot be told beforehand.
    """
    waiting, seen = [first], set()
    while waiting:
        agent = waiting.pop(0)
        if id(agent) in seen:
            continue
        seen.add(id(agent))
        yield agent
        waiting += [_target(one, agent) for one in agent.handoffs]
        waiting += [
            inner for one in agent.tools if (inner := agent_inside(one)) is not None
        ]


def agent_inside(tool: Any) -> Agent[Any] | None:
    """Return the agent that was made a tool by `Agent.as_tool`."""
    inner = getattr(tool, "_agent_instance", None)
    return inner if isinstance(inner, Agent) else None


def is_gated(tool: Any) -> bool:
    """Tell whether a tool is one of ours, unchanged where it matters."""
    return (
        isinstance(tool, FunctionTool)
        and isinstance(tool.on_invoke_tool, Body)
        and tool.name == tool.on_invoke_tool.name
    )


def _target(handoff: Any, agent: Agent[Any]) -> Agent[Any]:
    if isinstance(handoff, Agent):
        return handoff
    find = getattr(handoff, "_agent_ref", None)
    found = find() if isinstance(handoff, Handoff) and callable(find) else None
    if not isinstance(found, Agent):
        raise RunDiverged(
            f"Agent `{agent.name}` hands over to an agent that cannot be told "
            "beforehand, so nobody knows whether its tools are gated. Name it: "
            "handoff(other_agent)."
        )
    return found


def _settle(agent: Agent[Any]) -> None:
    """Set what the SDK must know of gated tools and inner agents, whatever the site set."""
    for one in agent.tools:
        if is_gated(one) or agent_inside(one) is not None:
            # The gate has a time of its own. A call that is told to have timed out would
            # still run and be recorded, and an inner agent's calls are among them.
            one.timeout_seconds = None
        if is_gated(one):
            one.tool_input_guardrails = [
                each if isinstance(each, Heeded) else Heeded(each)
                for each in one.tool_input_guardrails or ()
            ]


def _refuse_ungated(agent: Agent[Any], definition: AgentDefinition) -> None:
    """Refuse an agent with a tool that would run without gate and ledger."""
    if getattr(agent, "capabilities", None):
        raise RunDiverged(
            f"Agent `{agent.name}` is a {type(agent).__name__}, whose own tools no gate "
            "stands before. Use agents.Agent."
        )
    if agent.prompt is not None and not getattr(agent, UNGATED, False):
        raise RunDiverged(
            f"Agent `{agent.name}` has a prompt that is kept by the vendor, and may bring "
            "tools that run there, behind no gate. Write it as instructions, or say "
            "ungated(...) around the agent."
        )
    for one in [*agent.tools, *agent.mcp_servers]:
        if is_gated(one):
            continue
        name = getattr(one, "name", type(one).__name__)
        if name in definition.tools:
            raise RunDiverged(
                f"Agent `{agent.name}` has another tool called `{name}`; that is a gated "
                "one's name. Rename it."
            )
        if getattr(one, "needs_approval", False) is not False:
            raise RunDiverged(
                f"`{name}` of agent `{agent.name}` has a needs_approval of its own, and "
                "nobody could decide it here. Make it a @tool of this package."
            )
        if agent_inside(one) is None and not getattr(one, UNGATED, False):
            raise RunDiverged(
                f"`{name}` of agent `{agent.name}` is no @tool of this package: no gate "
                "and no ledger stands before it. Make it one and pass it in "
                "@agent(tools=[...]), or say ungated(...) around it."
            )

"""Performs turns with the SDK's own loop, and resumes its `RunState`."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from agents import (
    Agent,
    AgentsException,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelRefusalError,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    Runner,
    RunResult,
    RunState,
    ToolApprovalItem,
    ToolErrorFormatterArgs,
    ToolExecutionConfig,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
)
from agents.run_config import DEFAULT_MAX_TURNS
from agents.run_state import SUPPORTED_SCHEMA_VERSIONS
from pydantic_core import PydanticSerializationError, to_jsonable_python

from hitl_approvals import results
from hitl_approvals.agents.base import Completed, Suspended
from hitl_approvals.agents.framework import (
    FrameworkAgent,
    FrameworkTurn,
    Paused,
)
from hitl_approvals.agents.openai_agents import CAPABILITIES
from hitl_approvals.agents.openai_agents.building import (
    built,
    is_gated,
    reachable,
    require_found,
)
from hitl_approvals.agents.openai_agents.performing import Performance, performing
from hitl_approvals.agents.openai_agents.recorded import RecordingProvider
from hitl_approvals.agents.openai_agents.servers import connected
from hitl_approvals.agents.snapshots import REMEDY, Maker, Snapshot, unpack
from hitl_approvals.awaiting import awaited
from hitl_approvals.exceptions import PayloadRejected, RunDiverged, TurnFailed
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import AgentDefinition
from hitl_approvals.services.run import Run

REFUSED = (results.REJECTED, results.EXPIRED)
TRIPWIRES = (
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
)


class OpenAIAgent(FrameworkAgent):
    """Runs an `agents.Agent`, and all agents that it hands over to."""

    maker = Maker(framework="openai_agents", distribution="openai-agents", adapter=1)
    capabilities = CAPABILITIES

    def __init__(self, definition: AgentDefinition) -> None:
        super().__init__(definition)
        self.agent: Agent[Any] = built(definition)
        self.reached = list(reachable(self.agent))
        self.agents: dict[str, list[Agent[Any]]] = {}
        for one in self.reached:
            self.agents.setdefault(one.name, []).append(one)

    def resume(
        self, run: Run, state: Any, decisions: Sequence[PendingInterrupt]
    ) -> Completed | Suspended:
        """Go on from the last pause, if this process can read it: that comes first.

        Raises:
            RunDiverged: It cannot; nothing ran.
        """
        if state is not None:
            snapshot = unpack(self.maker, state)
            self._refuse_unreadable(snapshot)
            # Read twice: an approved call must not run where nothing could come of it.
            awaited(self._try_to_read, snapshot.data["state"])
        return super().resume(run, state, decisions)

    async def begin(self, turn: FrameworkTurn, given: Any) -> Completed | Paused:
        """Perform a turn from its beginning.

        Raises:
            TurnFailed: The input is none, or the agent came to no end.
        """
        if not isinstance(given, (str, list)):
            raise TurnFailed(
                "The input of this agent is a text or a list of items, not "
                f"{type(given).__name__}."
            )
        run = self._performance(turn)
        run.remember(given)
        with performing(run):
            async with connected(self.reached):
                return await self._until_it_ends(run, given)

    async def go_on(
        self,
        turn: FrameworkTurn,
        snapshot: Snapshot,
        messages: Mapping[tuple[str, str, int], dict[str, Any]],
    ) -> Completed | Paused:
        """Go on from a pause: give the SDK the decisions, and the gate's own texts."""
        run = self._performance(turn)
        run.recall(snapshot.data["calls"])
        with performing(run):
            async with connected(self.reached):
                state = await self._read(snapshot.data["state"])
                self._decide(run, state, messages)
                return await self._until_it_ends(run, state)

    def _performance(self, turn: FrameworkTurn) -> Performance:
        return Performance(turn, partial(require_found, self.reached, self.definition))

    def _decide(
        self,
        run: Performance,
        state: RunState[Any, Any],
        messages: Mapping[tuple[str, str, int], dict[str, Any]],
    ) -> None:
        """Tell the SDK of each call whether its tool is to be entered."""
        for item in state.get_interruptions():
            asked = run.asked_by(item)
            if asked is None:
                raise _not_ours(item)
            told = messages.get((asked.origin, asked.id, asked.ordinal))
            if told is not None and told["status"] in REFUSED:
                state.reject(item, rejection_message=told["content"])
                continue
            # Its body finds what came of it on record, or runs it if it is free.
            state.approve(item)
            if told is not None:
                run.let_through(item)

    async def _until_it_ends(
        self, run: Performance, given: str | list[Any] | RunState[Any, Any]
    ) -> Completed | Paused:
        turn = run.turn
        while True:
            result = await self._run(run, given)
            if turn.stopped is not None:
                raise turn.stopped
            run.require_all_entered()
            if not result.interruptions:
                return Completed(_plain(result.final_output))
            state = result.to_state()
            waiting = [await self._offered(run, item) for item in result.interruptions]
            if any(waiting):
                calls = run.kept(result.interruptions)
                return Paused({"state": state.to_json(), "calls": calls})
            # The SDK waits for a person where arguments are unreadable; the gate does
            # not ask anybody about those, and tells the model what is wrong with them.
            for item in result.interruptions:
                state.approve(item)
            given = state

    async def _offered(self, run: Performance, item: ToolApprovalItem) -> bool:
        asked = run.asked_by(item)
        if asked is None or asked.name not in self.definition.tools:
            raise _not_ours(item)
        return await run.offer(str(item.call_id), asked.name)

    async def _run(
        self, run: Performance, given: str | list[Any] | RunState[Any, Any]
    ) -> RunResult:
        """Let the SDK run up to its next pause or its end.

        Raises:
            TurnFailed: The agent came to no usable end, and would not in another try.
            RunDiverged: It cannot go on from where it paused.
        """
        turn = run.turn
        options = turn.execute_options
        context = copy.deepcopy(options) if isinstance(options, dict) else None
        most = _most_turns(context)
        replies, resumed = turn.replies, isinstance(given, RunState)
        provider = RecordingProvider()
        try:
            return await Runner.run(
                self.agent,
                given,
                # At a resume the state brings both along.
                context=None if resumed else context,
                max_turns=most,
                run_config=self._config(provider),
            )
        except AgentsException as error:
            if turn.stopped is not None:
                raise turn.stopped from error
            if isinstance(error, MaxTurnsExceeded):
                raise TurnFailed(
                    f"The agent asked its model {most} times and came to no end. Start "
                    'the turn with execute_options={"max_turns": ...} if it needs more.'
                ) from error
            if isinstance(error, TRIPWIRES):
                raise TurnFailed(f"A guardrail ended this turn: {error}") from error
            if run.asking:
                # The model itself failed: another run may find it well again.
                raise
            if resumed and turn.replies == replies:
                raise _unreadable(error) from error
            if isinstance(error, (ModelBehaviorError, ModelRefusalError)):
                # Its reply is on record: another try would end in the same way.
                raise TurnFailed(f"The model's reply is of no use: {error}") from error
            raise
        finally:
            await provider.aclose()

    def _config(self, provider: RecordingProvider) -> RunConfig:
        return RunConfig(
            model_provider=provider,
            # Traces go to a server of the vendor; what a turn did is on record here.
            tracing_disabled=True,
            # One after the other, so that every run of a turn meets the same order. The
            # gate has one place to stand in anyway.
            tool_execution=ToolExecutionConfig(
                max_function_tool_concurrency=1,
                # What a guardrail refuses must not run because a person allowed it.
                pre_approval_tool_input_guardrails=True,
            ),
            tool_not_found_behavior="return_error_to_model",
            tool_error_formatter=self._unknown_tool,
        )

    def _unknown_tool(self, args: ToolErrorFormatterArgs[Any]) -> str | None:
        if args.kind != "tool_not_found":
            return None
        return results.unknown_tool(args.tool_name, list(self.definition.tools))

    async def _try_to_read(self, state: dict[str, Any]) -> None:
        async with connected(self.reached):
            await self._read(state)

    async def _read(self, state: dict[str, Any]) -> RunState[Any, Any]:
        try:
            return await RunState.from_json(self.agent, copy.deepcopy(state))
        except Exception as error:
            raise _unreadable(error) from error

    def _refuse_unreadable(self, snapshot: Snapshot) -> None:
        """Refuse a pause that could not be resumed, before a decided call has run.

        Raises:
            RunDiverged: The text says what has changed and what to do.
        """
        state = snapshot.data["state"]
        schema = state.get("$schemaVersion")
        if schema not in SUPPORTED_SCHEMA_VERSIONS:
            raise RunDiverged(
                f"This turn was paused with version {schema} of the SDK's RunState, which "
                f"the openai-agents installed here does not read. {REMEDY}"
            )
        named = [state["current_agent"]["name"]]
        named += [one["agent"] for one in snapshot.data["calls"]["waiting"].values()]
        for name in named:
            if name not in self.agents:
                raise RunDiverged(
                    f"This turn was paused in agent `{name}`, and there is none of that "
                    f"name now: {', '.join(sorted(self.agents))}. Give it its name back "
                    "and retry the turn, restart it, or cancel it."
                )
        for one in snapshot.data["calls"]["waiting"].values():
            tool, name = one["asked"]["name"], one["agent"]
            own = [each for agent in self.agents[name] for each in agent.tools]
            if tool not in {each.name for each in own if is_gated(each)}:
                raise RunDiverged(
                    f"`{tool}` was asked for, and is not among the tools of agent "
                    f"`{name}` now. Nothing ran. Give it back and retry the turn, "
                    "restart it, or cancel it."
                )


def _most_turns(options: dict[str, Any] | None) -> int | None:
    most: Any = (options or {}).get("max_turns", DEFAULT_MAX_TURNS)
    if most is not None and (type(most) is not int or most < 1):
        raise TurnFailed(f"max_turns must be a number above 0 or null, not {most!r}.")
    return None if most is None else int(most)


def _not_ours(item: ToolApprovalItem) -> RunDiverged:
    return RunDiverged(
        f"The SDK waits for somebody to approve `{item.name}`, which is no gated tool of "
        "this agent, so nobody can. Make it a @tool of this package, or take its own "
        "approval away."
    )


def _unreadable(error: Exception) -> RunDiverged:
    return RunDiverged(f"The SDK cannot go on from this pause: {error} {REMEDY}")


def _plain(output: Any) -> Any:
    try:
        return to_jsonable_python(output)
    except PydanticSerializationError as error:
        raise PayloadRejected(
            f"What the agent returned cannot be written as JSON: {error}"
        ) from error


_made: dict[str, OpenAIAgent] = {}


def of(definition: AgentDefinition) -> OpenAIAgent:
    """Return the agent of a definition, built once in this process.

    One with MCP servers is built for each run: their connections belong to one event loop.

    Raises:
        RunDiverged: It cannot be run as it is built.
    """
    known = _made.get(definition.name)
    if known is None or known.definition is not definition:
        known = OpenAIAgent(definition)
        if not any(one.mcp_servers for one in known.reached):
            _made[definition.name] = known
    return known

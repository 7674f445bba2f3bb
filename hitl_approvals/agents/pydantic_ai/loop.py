"""Performs the turns of a Pydantic AI agent. Tools, replies and pauses have own modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pydantic_ai
from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolApproved
from pydantic_ai.exceptions import (
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from pydantic_core import PydanticSerializationError, to_jsonable_python

from hitl_approvals.agents.base import Completed, Suspended
from hitl_approvals.agents.framework import (
    FrameworkAgent,
    FrameworkTurn,
    Paused,
    in_worker,
)
from hitl_approvals.agents.pydantic_ai import CAPABILITIES, give_back
from hitl_approvals.agents.pydantic_ai.conversation import prompt_of
from hitl_approvals.agents.pydantic_ai.journal import Journal
from hitl_approvals.agents.pydantic_ai.outputs import foreign_functions, with_pauses
from hitl_approvals.agents.pydantic_ai.pauses import (
    Pause,
    decided,
    let_in,
    offer_rest,
)
from hitl_approvals.agents.pydantic_ai.tools import NoPlainCalls, gated, refuse
from hitl_approvals.agents.pydantic_ai.visit import Visit, visiting
from hitl_approvals.agents.snapshots import REMEDY, Maker, Snapshot, unpack
from hitl_approvals.exceptions import (
    HitlConfigurationError,
    PayloadRejected,
    RunDiverged,
    TurnFailed,
)
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import AgentDefinition, current_gate
from hitl_approvals.services.run import Run

FINAL = (UnexpectedModelBehavior, UsageLimitExceeded)
"""What a run would come to again: its replies are on record."""


class PydanticAgent(FrameworkAgent):
    """An agent whose loop is Pydantic AI's."""

    maker = Maker(framework="pydantic_ai", distribution="pydantic-ai-slim", adapter=1)
    capabilities = CAPABILITIES

    def __init__(self, definition: AgentDefinition) -> None:
        super().__init__(definition)
        made = definition.target([gated(tool) for tool in definition.tools.values()])
        if not isinstance(made, pydantic_ai.Agent):
            raise HitlConfigurationError(
                f"Agent `{definition.name}`: its factory takes the tools and returns a "
                f"`pydantic_ai.Agent`; it returned {type(made).__name__}."
            )
        self._agent: Any = made
        self._output = with_pauses(made.output_type)
        self._takers = list(foreign_functions(made.output_type))
        self._deps = _deps_of(definition, made.deps_type)
        self._pause: Pause | None = None

    def start(self, run: Run, input: Any) -> Completed | Suspended:  # noqa: A002
        """Perform a turn from its beginning."""
        try:
            return super().start(run, input)
        finally:
            give_back(self)

    def resume(
        self, run: Run, state: Any, decisions: Sequence[PendingInterrupt]
    ) -> Completed | Suspended:
        """Go on from the last pause, if this process can read it: that comes first.

        Raises:
            RunDiverged: It cannot; nothing ran.
        """
        try:
            if state is not None:
                self._pause = Pause.load(unpack(self.maker, state).data)
            return super().resume(run, state, decisions)
        finally:
            self._pause = None
            give_back(self)

    async def begin(self, turn: FrameworkTurn, given: Any) -> Completed | Paused:
        """Perform a turn from its beginning."""
        return await self._run(self._visit(turn), prompt_of(given))

    async def go_on(
        self,
        turn: FrameworkTurn,
        snapshot: Snapshot,
        messages: Mapping[tuple[str, str, int], dict[str, Any]],
    ) -> Completed | Paused:
        """Go on from a pause.

        Raises:
            RunDiverged: The framework cannot go on from what is kept.
        """
        pause = self._pause
        assert pause is not None  # noqa: S101  read before anything ran
        answers = await in_worker(decided, turn, pause, snapshot.calls, messages)
        try:
            return await self._resume(turn, pause, answers)
        except UserError as error:
            raise RunDiverged(
                f"Pydantic AI cannot go on from this pause: {error} {REMEDY}"
            ) from error

    async def _resume(
        self, turn: FrameworkTurn, pause: Pause, answers: DeferredToolResults
    ) -> Completed | Paused:
        let_through = {
            call.tool_call_id: call.tool_name
            for call in pause.requests.approvals
            if isinstance(answers.approvals[call.tool_call_id], ToolApproved)
        }
        return await self._run(
            self._visit(turn, steps_before=pause.steps, decided=let_through),
            message_history=pause.messages,
            deferred_tool_results=answers,
            usage=pause.usage,
        )

    def _visit(self, turn: FrameworkTurn, **resumed: Any) -> Visit:
        return Visit(turn, self.definition.tools, **resumed)

    async def _run(
        self, visit: Visit, prompt: Any = None, **resumed: Any
    ) -> Completed | Paused:
        turn = visit.turn
        if self._takers:
            refuse(self._takers, turn, "It takes the agent's output: take it out")
        token, gate = visiting.set(visit), current_gate.set(NoPlainCalls(turn))
        try:
            # Its connections belong to this event loop, and are closed before it ends.
            async with self._agent:
                result = await self._agent.run(
                    prompt,
                    output_type=self._output,
                    deps=self._read_deps(turn.execute_options),
                    conversation_id=turn.thread_id,
                    run_id=visit.run_id,
                    capabilities=[Journal(visit)],
                    infer_name=False,
                    **resumed,
                )
        except FINAL as error:
            if visit.asking:
                # The model itself failed: another run may find it well again.
                raise
            raise TurnFailed(f"{type(error).__name__}: {error}") from error
        finally:
            visiting.reset(token)
            current_gate.reset(gate)
        visit.require_all_entered()
        if not isinstance(result.output, DeferredToolRequests):
            return Completed(_as_json(result.output))
        pause = Pause(
            messages=result.all_messages(),
            requests=result.output,
            usage=result.usage,
            steps=visit.steps,
        )
        await in_worker(offer_rest, pause, visit)
        if not turn.wanted:
            # Marked by the agent, and not even fit to be asked about: the gate says so.
            return await self._resume(turn, pause, let_in(pause.requests))
        return Paused(pause.dump())

    def _read_deps(self, options: Any) -> Any:
        """Return the agent's `deps`, read from the turn's `execute_options`.

        Raises:
            TurnFailed: They do not fit.
        """
        if self._deps is None:
            return None
        try:
            return self._deps.validate_python(options)
        except ValidationError as error:
            raise TurnFailed(
                "execute_options= are the agent's deps, and do not fit their type: "
                f"{error}"
            ) from error


def _deps_of(definition: AgentDefinition, deps_type: Any) -> TypeAdapter[Any] | None:
    """Return what reads an agent's `deps`; None if it takes none.

    Raises:
        HitlConfigurationError: They cannot be read from JSON.
    """
    if deps_type in (object, Any, None, type(None)):
        return None
    try:
        return TypeAdapter(deps_type)
    except PydanticUserError as error:
        raise HitlConfigurationError(
            f"Agent `{definition.name}`: its deps are read from the turn's execute_options, "
            f"and pydantic cannot read {deps_type!r} from JSON. Give the tools what they "
            "need in the factory, and keep deps to data."
        ) from error


def _as_json(output: Any) -> Any:
    """Return an agent's output as JSON.

    Raises:
        PayloadRejected: It cannot be written as JSON.
    """
    try:
        return to_jsonable_python(output)
    except PydanticSerializationError as error:
        raise PayloadRejected(
            f"The agent's output cannot be written as JSON: {error}"
        ) from error

"""The function agent: a plain Python function that is replayed from its journal."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import iscoroutinefunction
from typing import Any, ClassVar

from hitl_approvals.agents.async_turn import AsyncTurn
from hitl_approvals.agents.base import Completed, Suspended
from hitl_approvals.agents.capabilities import Capabilities
from hitl_approvals.agents.guarding import guarded
from hitl_approvals.agents.turn import Turn
from hitl_approvals.awaiting import awaited
from hitl_approvals.exceptions import InterruptSuspended
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import AgentDefinition
from hitl_approvals.services.run import Run

CAPABILITIES = Capabilities(
    partial_resume=False,
    native_edit=True,
    reject_text=True,
    questions=True,
    replays_replies=True,
    durability="package",
    state_format="journal",
)


class FunctionAgent:
    """Runs a function from its top, every time; the journal makes that one execution."""

    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, definition: AgentDefinition) -> None:
        self._definition = definition

    def start(self, run: Run, input: Any) -> Completed | Suspended:  # noqa: A002
        """Perform a turn from its beginning."""
        return self._perform(run, input)

    def resume(
        self, run: Run, state: Any, decisions: Sequence[PendingInterrupt]
    ) -> Completed | Suspended:
        """Go on: the same function, with the journal and the decisions in place."""
        return self._perform(run, run.turn.input)

    def _perform(self, run: Run, given: Any) -> Completed | Suspended:
        turn = Turn(run, self._definition)
        target = self._definition.target

        def work() -> Any:
            if iscoroutinefunction(target):
                return awaited(target, AsyncTurn(turn), given)
            return target(turn, given)

        try:
            return Completed(guarded(turn, work))
        except InterruptSuspended:
            return Suspended()


def make(definition: AgentDefinition) -> FunctionAgent:
    """Return the agent that runs this definition's function."""
    return FunctionAgent(definition)

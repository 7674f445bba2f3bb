"""What the adapters of durable engines share: the engine runs the loop, we the calls.

A turn is one workflow. It shows its calls a round at a time; they are decided here, run
here under the ledger, and their results are delivered to the workflow once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar
from uuid import UUID

from hitl_approvals.agents.base import Completed, Suspended, load
from hitl_approvals.agents.capabilities import Capabilities
from hitl_approvals.agents.following import Following, workflow_id
from hitl_approvals.agents.framework import FrameworkTurn
from hitl_approvals.agents.guarding import guarded
from hitl_approvals.agents.links import Engine, EngineAway
from hitl_approvals.agents.snapshots import unpack
from hitl_approvals.awaiting import awaited
from hitl_approvals.exceptions import HitlConfigurationError, InterruptSuspended
from hitl_approvals.models import AgentTurn, PendingInterrupt
from hitl_approvals.registry import AgentDefinition, registry
from hitl_approvals.services.run import Run

CAPABILITIES = Capabilities(
    partial_resume=False,
    native_edit=True,
    reject_text=True,
    questions=True,
    replays_replies=True,
    durability="engine",
    state_format="external",
)


class ForwarderAgent:
    """Follows a workflow in an engine; each run goes on from what the engine shows."""

    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, definition: AgentDefinition, engine: Engine) -> None:
        self.definition = definition
        self.engine = engine

    def start(self, run: Run, input: Any) -> Completed | Suspended:  # noqa: A002
        """Start the workflow, and follow it to its first round or its end."""
        return self._perform(run)

    def resume(
        self, run: Run, state: Any, decisions: Sequence[PendingInterrupt]
    ) -> Completed | Suspended:
        """Run what was decided, deliver it, and follow the workflow from there."""
        if state is not None:
            unpack(self.engine.maker, state)
        return self._perform(run)

    def cancel(self, turn: AgentTurn) -> bool:
        """Cancel the workflow of a turn; False if the engine did not answer."""
        return bool(awaited(self._cancel, workflow_id(turn)))

    async def _cancel(self, workflow: str) -> bool:
        with suppress(EngineAway):
            async with self.engine.link() as link:
                await link.cancel(workflow)
                return True
        return False

    def _perform(self, run: Run) -> Completed | Suspended:
        turn = FrameworkTurn(run, self.definition)
        following = Following(self.engine, turn, run)
        try:
            outcome = guarded(turn, lambda: awaited(following.follow))
        except InterruptSuspended:
            return Suspended()
        if isinstance(outcome, Completed):
            return outcome
        return Suspended(
            requests=list(turn.wanted.values()), state=following.state(outcome)
        )


def address_of(definition: AgentDefinition, kind: type[Any]) -> Any:
    """Return the address that an agent's factory names.

    Raises:
        HitlConfigurationError: It names none of this kind.
    """
    made = definition.target() if callable(definition.target) else definition.target
    if not isinstance(made, kind):
        raise HitlConfigurationError(
            f"Agent `{definition.name}` has kind {definition.kind!r}: its function takes "
            f"nothing and returns a {kind.__name__}; got {made!r}."
        )
    return made


def cancel_workflow(turn_id: UUID | str) -> bool:
    """Cancel the workflow of a turn that was cancelled; call it off the web process.

    For a receiver of `turn_cancelled`: nothing of a cancelled turn runs here, and its
    workflow would wait for ever.

    Returns:
        False if the turn is none of an engine, or its engine did not answer.
    """
    turn = AgentTurn.objects.filter(pk=turn_id).first()
    definition = None if turn is None else registry.agents.get(turn.agent)
    if turn is None or definition is None:
        return False
    agent = load(definition)
    return isinstance(agent, ForwarderAgent) and agent.cancel(turn)

"""What the adapters of durable engines share: the engine runs the loop, we the calls.

A turn is one workflow. It shows its calls a round at a time; they are decided here, run
here under the ledger, and their results are delivered to the workflow once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from hitl_approvals.agents.base import Completed, Suspended
from hitl_approvals.agents.capabilities import Capabilities
from hitl_approvals.agents.ending import ending
from hitl_approvals.agents.following import Following
from hitl_approvals.agents.framework import FrameworkTurn
from hitl_approvals.agents.guarding import guarded
from hitl_approvals.agents.links import Engine
from hitl_approvals.agents.snapshots import unpack
from hitl_approvals.awaiting import awaited
from hitl_approvals.exceptions import HitlConfigurationError, InterruptSuspended
from hitl_approvals.models import AgentTurn, PendingInterrupt
from hitl_approvals.registry import AgentDefinition
from hitl_approvals.services.partings import left_of_another_kind
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

    def leave(self, turn: AgentTurn) -> str:
        """End the workflows of a cancelled turn; return what is open still, or nothing.

        Nothing of the turn runs here any more, and they would wait for ever.
        """
        if turn.fence == 1:
            # The cancellation's own: no run ever had the turn, so none started anything.
            return ""
        kind = self.engine.maker.framework
        # Another engine knows no such workflow, which is no sign that it is over.
        return left_of_another_kind(turn, kind) or str(
            awaited(ending, self.engine, turn)
        )

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
            f"nothing and returns a {kind.__name__}; got a {type(made).__name__}."
        )
    return made

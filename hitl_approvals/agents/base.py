"""The one protocol that every kind of agent implements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from hitl_approvals.agents.capabilities import module_of
from hitl_approvals.exceptions import HitlConfigurationError
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import AgentDefinition
from hitl_approvals.services.requests import Request
from hitl_approvals.services.run import Run


@dataclass(frozen=True, slots=True)
class Completed:
    """The turn is over; `output` is JSON."""

    output: Any


@dataclass(frozen=True, slots=True)
class Suspended:
    """The turn waits for people.

    `requests` are still to be written, unless the agent's gate has done so already:
    then there are none, and the turn is `suspended` by now.
    """

    requests: Sequence[Request] = ()
    state: Any = None


class Agent(Protocol):
    """Performs the turns of one registered agent."""

    def start(self, run: Run, input: Any) -> Completed | Suspended:  # noqa: A002
        """Perform a turn from its beginning."""
        ...

    def resume(
        self, run: Run, state: Any, decisions: Sequence[PendingInterrupt]
    ) -> Completed | Suspended:
        """Go on with a turn whose interrupts were decided."""
        ...


def load(definition: AgentDefinition) -> Agent:
    """Return the agent of a definition; its kind's module is imported only now.

    Raises:
        HitlConfigurationError: There is no such kind.
    """
    name = module_of(definition.kind)
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise HitlConfigurationError(
            f"Agent `{definition.name}` has kind {definition.kind!r}, which is unknown."
        ) from error
    made: Agent = module.make(definition)
    return made

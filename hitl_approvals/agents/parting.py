"""Ends what a cancelled turn has left in an engine; the row says so until it is over."""

from __future__ import annotations

import logging
from typing import Protocol, runtime_checkable
from uuid import UUID

from hitl_approvals.agents.base import load
from hitl_approvals.models import AgentTurn
from hitl_approvals.registry import registry
from hitl_approvals.services import partings
from hitl_approvals.text import cleaned

logger = logging.getLogger("hitl_approvals")


@runtime_checkable
class Leaving(Protocol):
    """An agent whose turns leave something outside that goes on without them."""

    def leave(self, turn: AgentTurn) -> str:
        """End what a cancelled turn has left; return what is open still, or nothing."""
        ...


def let_go(turn_id: UUID) -> bool:
    """End what a cancelled turn has left outside; False if there is nothing to do here.

    Whatever goes wrong, the row stays noted, and somebody tries again.
    """
    turn = partings.take(turn_id, registry.agents)
    # MariaDB's collation may take an agent for another of the same letters.
    if turn is None or turn.agent not in registry.agents:
        return False
    try:
        is_open = _leave(turn)
    except Exception as error:
        logger.exception("What turn %s has left outside is not ended.", turn.pk)
        is_open = f"{type(error).__name__}: {error}"
    if is_open:
        partings.put_off(turn, cleaned(is_open, 4000))
    else:
        partings.settle(turn)
    return True


def _leave(turn: AgentTurn) -> str:
    definition = registry.agents[turn.agent]
    agent = load(definition)
    if isinstance(agent, Leaving):
        return agent.leave(turn)
    return partings.left_of_another_kind(turn, definition.kind)

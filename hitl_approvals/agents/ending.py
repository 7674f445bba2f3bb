"""Asks an engine to end the workflows of a cancelled turn, and looks whether they did."""

from __future__ import annotations

from hitl_approvals.agents.following import workflow_id, workflows_of
from hitl_approvals.agents.links import (
    Absent,
    Broken,
    CannotCancel,
    Ended,
    Engine,
    EngineAway,
    Link,
    Working,
)
from hitl_approvals.models import AgentTurn
from hitl_approvals.services.partings import LATE_START, age_of


async def ending(engine: Engine, turn: AgentTurn) -> str:
    """End the workflows of a cancelled turn; return what is open still, or nothing."""
    place = f"{engine.name} at {engine.where}"
    try:
        async with engine.link() as link:
            found = [await _ended(link, turn, one) for one in workflows_of(turn)]
    except EngineAway as away:
        return f"{place} does not answer: {away}"
    told = " ".join(text for text in found if text)
    return f"{place}: {told}" if told else ""


async def _ended(link: Link, turn: AgentTurn, workflow: str) -> str:
    """End one workflow; that the engine says it is over counts, and nothing else."""
    seen = await link.look(workflow)
    if isinstance(seen, Absent):
        if _was_started(turn, workflow):
            return ""
        if await link.forestall(workflow):
            # The one that took its place, or the one that was faster.
            seen = await link.look(workflow)
        elif age_of(turn) >= LATE_START:
            return ""
        else:
            return (
                f"There is no workflow {workflow}. A worker that was about to start it "
                "may be late, so it is looked for a while longer."
            )
    if not isinstance(seen, Ended | Broken):
        try:
            await link.cancel(workflow)
        except CannotCancel as unable:
            return f"The workflow {workflow} cannot be cancelled from here: {unable}"
        seen = await link.look(workflow)
    if isinstance(seen, Ended | Broken):
        return ""
    why = seen.why if isinstance(seen, Working) else "It waits for an answer still."
    return f"The workflow {workflow} was asked to end, and has not yet. {why}".strip()


def _was_started(turn: AgentTurn, workflow: str) -> bool:
    """Tell whether an absent workflow is one that was there once."""
    known = (turn.state or {}).get("data", {}).get("started", False)
    return known and workflow == workflow_id(turn)

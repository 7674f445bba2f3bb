"""Looks at what cancelled turns have left in engines."""

from __future__ import annotations

from datetime import timedelta

from hitl_approvals.health.lines import Level, Line, counted, spoken
from hitl_approvals.health.work import SHOWN, Pile
from hitl_approvals.registry import registry
from hitl_approvals.services import partings

PATIENCE = partings.LATE_START + timedelta(minutes=5)
"""After this a workflow that was to end is odd, unless its engine is away."""


def cancelled() -> Line:
    """Say whether workflows of cancelled turns may still wait in their engines."""
    open_ones = partings.unsettled()
    pile = Pile.of(open_ones, "finished_at")
    text = counted(
        pile.count,
        "cancelled turn may have an open workflow",
        "cancelled turns may have open workflows",
    )
    if pile.age <= PATIENCE:
        return Line("workflows", Level.OK, f"{text}.", facts=pile.facts)
    oldest = list(
        open_ones.order_by("finished_at").values("pk", "agent", "last_error")[:SHOWN]
    )
    shown = [
        {"turn": str(row["pk"]), "agent": row["agent"], "error": row["last_error"]}
        for row in oldest
    ]
    first = shown[0]
    error = first["error"].removeprefix(partings.OPEN).strip().partition("\n")[0][:300]
    if not error:
        known = first["agent"] in registry.agents
        error = (
            f"Nobody has looked yet whether agent `{first['agent']}` left one"
            f"{'' if known else '; this process does not register it'}."
        )
    return Line(
        "workflows",
        Level.WARN,
        f"{text}, the oldest for {spoken(pile.age)} ({first['turn']}). {error}",
        "Workers that register the agent end it as soon as its engine lets them. If "
        "there will be none, end the workflow hitl-<turn>-<restarts> in the engine by hand.",
        {**pile.facts, "oldest": shown},
    )

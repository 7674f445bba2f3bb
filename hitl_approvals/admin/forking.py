"""Forks in the admin: what one would take over, and which turns belong together."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals import permissions, selectors
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.text import plain, show
from hitl_approvals.exceptions import ReviewerNotAllowed, TurnNotFound
from hitl_approvals.models import AgentTurn, PendingInterrupt, TurnStep
from hitl_approvals.services import fork_points
from hitl_approvals.types import Person

MOST_FORKS = 20


def may_fork(user: Person, turn: AgentTurn) -> bool:
    """Tell whether the page offers to fork the turn."""
    try:
        permissions.require_fork(user, turn)
    except (ReviewerNotAllowed, TurnNotFound):
        return False
    return True


def confirmation(
    desk: DeskAdmin, turn: AgentTurn, at: str | None, user: Person
) -> dict[str, Any]:
    """Return what the page shows that asks once more before a fork is made.

    Raises:
        TurnNotFound: The person may not even see it.
        ReviewerNotAllowed: The right is missing.
        PayloadRejected: The point is none of this turn.
        TransitionNotAllowed: Nothing can be replayed up to there.
    """
    permissions.require_fork(user, turn)
    past = fork_points.past_of(turn, at)
    return {
        "title": _("Fork the turn of agent %s") % plain(turn.agent, 60),
        "crumb": show(turn.agent, limit=60, one_line=True).html,
        "row_url": desk.link("change", turn.pk),
        "fork_url": desk.link("fork", turn.pk),
        "at": at or "",
        "key": uuid4(),
        "after_step": next(
            (_step_name(step) for step in past.kept if str(step.pk) == past.at), None
        ),
        "again": [_row_name(row) for row in past.again],
        "answered": len(past.answered),
        "kept": len(past.kept),
        "left_out": [
            {"name": _step_name(step), "status": step.get_status_display()}
            for step in past.left_out
        ],
    }


def relatives(desk: DeskAdmin, turn: AgentTurn, user: Person) -> dict[str, Any]:
    """Return what the page of a turn shows of its origin and its forks."""
    parent = None
    if turn.parent_id is not None:
        seen = permissions.turns_visible_to(user).filter(pk=turn.parent_id).exists()
        parent = {
            "url": desk.link("change", turn.parent_id) if seen else "",
            "id": turn.parent_id,
        }
    found = selectors.forks_of(turn, user).only("status", "created_at")
    forks = list(found[: MOST_FORKS + 1])
    return {
        "origin": parent,
        "forks": [
            {
                "url": desk.link("change", one.pk),
                "id": one.pk,
                "status": one.get_status_display(),
            }
            for one in forks[:MOST_FORKS]
        ],
        "more_forks": len(forks) > MOST_FORKS,
        "left_out": [
            {
                "name": show(one["name"], limit=60, one_line=True).html,
                "position": one["position"],
            }
            for one in selectors.left_out_of(turn)
        ],
    }


def origin_of(desk: DeskAdmin, row: PendingInterrupt) -> dict[str, Any] | None:
    """Return where an interrupt of a fork came from, for its page."""
    origin = came_from(row)
    if not origin:
        parent = row.turn.parent_id if row.turn is not None else None
        if parent is None:
            return None
        return {"url": desk.link("change", parent, model="agentturn"), "new": True}
    return {
        "url": desk.link("change", origin["interrupt"], model="pendinginterrupt"),
        "copied": bool(row.policy.get("taken_over")),
    }


def descendants(
    desk: DeskAdmin, row: PendingInterrupt, user: Person
) -> list[dict[str, Any]]:
    """Return the interrupts of forks that were made from this one, newest first."""
    if row.turn is None:
        return []
    turns = list(selectors.forks_of(row.turn, user).only("pk")[:MOST_FORKS])
    if not turns:
        return []
    found = selectors.interrupts_of(turns, user).filter(kind=row.kind)
    return [
        {
            "url": desk.link("change", one.pk),
            "id": one.pk,
            "status": one.get_status_display(),
        }
        for one in found.only("context", "status", "turn").order_by("-pk")
        if came_from(one).get("interrupt") == str(row.pk)
    ]


def came_from(row: PendingInterrupt) -> dict[str, Any]:
    """Return what an interrupt of a fork knows of its origin; others know nothing."""
    if row.turn_id is None or not isinstance(row.context, dict):
        # What a remote agent calls its context is its own.
        return {}
    origin = row.context.get("forked_from")
    return origin if isinstance(origin, dict) else {}


def _step_name(step: TurnStep) -> SafeString:
    return show(step.name, limit=60, one_line=True).html


def _row_name(row: PendingInterrupt) -> SafeString:
    return show(row.tool_name or _("question"), limit=60, one_line=True).html

"""Who is told that a run may be owed. A hint may be lost, late or doubled at no cost."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib import import_module
from uuid import UUID

from hitl_approvals.conf import hitl_settings

logger = logging.getLogger("hitl_approvals")

NAMES = ("celery", "worker", "inline")


def wake(turn_id: UUID) -> bool:
    """Pass the hint to the site's dispatcher. Bounded in time; never raises.

    Returns:
        True if the hint went out, as far as this process can tell.
    """
    name = hitl_settings.dispatcher
    if name == "worker":
        return False  # `manage.py hitl_worker` looks at the rows by itself.
    try:
        told: bool = import_module(f"hitl_approvals.dispatchers.{name}").wake(turn_id)
    except Exception:
        # The row says that a run is owed; a sweeper will say so again.
        logger.warning(
            "Could not announce turn %s; the sweeper will.", turn_id, exc_info=True
        )
        return False
    return told


def deliver(channels: Sequence[str]) -> bool:
    """Announce that deliveries are owed to these channels. Never raises.

    Returns:
        True if the hint is on its way, as far as this process can tell.
    """
    name = hitl_settings.dispatcher
    if name == "worker":
        return False  # `manage.py hitl_worker` looks at the rows by itself.
    try:
        dispatcher = import_module(f"hitl_approvals.dispatchers.{name}")
        told: bool = dispatcher.deliver(channels)
    except Exception:
        # The rows say what is owed; a sweeper will say so again.
        logger.warning(
            "Could not announce deliveries to %s; the sweeper will.",
            ", ".join(channels),
            exc_info=True,
        )
        return False
    return told

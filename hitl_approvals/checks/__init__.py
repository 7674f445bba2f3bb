"""System checks: what cannot work is an error, what will surprise is a warning.

Importing this registers them. Each has a number, which is never used for anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.core.checks import CheckMessage

from hitl_approvals.checks.agents import (
    check_agents,
    check_effects,
    check_names_in_policies,
)
from hitl_approvals.checks.broker import check_broker
from hitl_approvals.checks.database import (
    check_clock,
    check_database,
    check_one_database,
    check_people,
)
from hitl_approvals.checks.desk import check_desk
from hitl_approvals.checks.settings import check_settings, check_time_zone
from hitl_approvals.checks.views import check_views
from hitl_approvals.checks.webhooks import check_webhooks

ALL: Sequence[Callable[..., list[CheckMessage]]] = (
    check_settings,
    check_time_zone,
    check_one_database,
    check_people,
    check_clock,
    check_database,
    check_broker,
    check_views,
    check_agents,
    check_effects,
    check_names_in_policies,
    check_desk,
    check_webhooks,
)


def run(databases: Sequence[str]) -> list[CheckMessage]:
    """Return what our own checks find and the site does not silence.

    Args:
        databases: Aliases whose settings may be looked at.
    """
    found = [
        message for check in ALL for message in check(None, databases=list(databases))
    ]
    return [message for message in found if not message.is_silenced()]

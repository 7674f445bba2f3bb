"""The broken site's settings. Database and broker are put in when they are up."""

from __future__ import annotations

from typing import Any

from tests.crash.settings import *  # noqa: F403  settings are made by layering
from tests.crash.settings import HITL_APPROVALS, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.chaos.shop"]

# Long enough that a worker which is merely slow is not taken for a dead one every time.
HITL_APPROVALS: dict[str, Any] = {
    **HITL_APPROVALS,
    "DISPATCHER": "celery",
    "LEASE": 2,
    "SWEEP": 0.5,
    "BACKOFF": 0.1,
    "BACKOFF_MAX": 1,
    "HINT_AFTER": 0.5,
    "HINT_MAX": 2,
    "MAX_ATTEMPTS": 1000,
    "EXPIRES_IN": 12,
    "EXECUTE_WITHIN": 5,
    "TIMEOUT": 1.5,
    "DEADLINE_MARGIN": 0.5,
    "PUBLISH_TIMEOUT": 1,
}

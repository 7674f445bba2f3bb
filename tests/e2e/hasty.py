"""The example site with leases so short that no test has to wait long for their end."""

from __future__ import annotations

from example_project import settings
from example_project.settings import *  # noqa: F403  settings are made by layering

HITL_APPROVALS = {**settings.HITL_APPROVALS, "LEASE": 1.5, "SWEEP": 0.3}

"""The example site, as it is asked everything that its document allows."""

from __future__ import annotations

from example_project import settings
from example_project.settings import *  # noqa: F403  settings are made by layering

# Turns are run by `hitl_worker`: no broker is part of what is asked.
HITL_APPROVALS = {**settings.HITL_APPROVALS, "DISPATCHER": "worker"}
DATABASES = settings.DATABASES
if "init_command" in DATABASES["default"]["OPTIONS"]:
    # Nobody takes the power away here.
    DATABASES["default"]["OPTIONS"]["init_command"] = (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"
    )

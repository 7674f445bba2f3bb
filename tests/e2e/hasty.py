"""The example site with leases so short that no test has to wait long for their end.

Its connections are kept, and its workers have one open when they fork their pool: what
a child did with its parent's connection, both would suffer from.
"""

from __future__ import annotations

from typing import Any

from celery.signals import celeryd_after_setup

from example_project import settings
from example_project.settings import *  # noqa: F403  settings are made by layering

HITL_APPROVALS = {**settings.HITL_APPROVALS, "LEASE": 1.5, "SWEEP": 0.3}
DATABASES = {"default": {**settings.DATABASES["default"], "CONN_MAX_AGE": 600}}


@celeryd_after_setup.connect
def _open_before_the_fork(**_signal: Any) -> None:
    # Celery closes what was open before this signal, and forks after it.
    from django.db import connection

    connection.ensure_connection()

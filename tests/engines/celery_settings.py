"""The settings of the suite that runs, for a Celery worker that soon looks again."""

from __future__ import annotations

from typing import Any

from tests.executor.worker_settings import *  # noqa: F403  settings are made by layering
from tests.executor.worker_settings import HITL_APPROVALS as OF_WORKERS

HITL_APPROVALS: dict[str, Any] = {**OF_WORKERS, "HINT_AFTER": 0.5}

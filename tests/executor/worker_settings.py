"""The settings of the suite that runs, for a worker that takes hints from a broker."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

globals().update(vars(import_module(os.environ["HITL_TEST_BASE_SETTINGS"])))

HITL_APPROVALS: dict[str, Any] = {
    "DISPATCHER": "celery",
    "CELERY_QUEUE": os.environ["HITL_TEST_QUEUE"],
    "SWEEP": 0.5,
}

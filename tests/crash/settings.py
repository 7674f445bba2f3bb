"""The killed site's settings. Every lane puts a database of its own in their place."""

from __future__ import annotations

import os
from typing import Any

from tests.settings.sqlite import *  # noqa: F403  settings are made by layering

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "rest_framework",
    "rest_framework.authtoken",
    "django_filters",
    "hitl_approvals",
    "tests.crash.site",
]
MIDDLEWARE: list[str] = []
ROOT_URLCONF = "tests.crash.site.urls"

CELERY_BROKER_URL = os.environ.get("HITL_TEST_REDIS_URL", "redis://127.0.0.1:1/0")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 3, "socket_timeout": 5}
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1

# Short, so that a case takes seconds; the attempts must outlast whatever is killed.
HITL_APPROVALS: dict[str, Any] = {
    "DISPATCHER": "worker",
    "LEASE": 1.2,
    "SWEEP": 0.3,
    "BACKOFF": 0.05,
    "BACKOFF_MAX": 0.2,
    "MAX_ATTEMPTS": 50,
    "HINT_AFTER": 0.4,
    "HINT_MAX": 0.8,
    "UNCLAIMED_AFTER": 3600,
    "TIMEOUT": 0.8,
    "DEADLINE_MARGIN": 0.2,
}

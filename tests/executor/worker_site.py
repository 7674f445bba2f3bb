"""A site's Celery app, and its graph: what a worker process imports."""

from __future__ import annotations

import os

import django
from celery import Celery

django.setup()

app = Celery("worker_site", broker=os.environ["HITL_TEST_BROKER"])
app.conf.imports = ["hitl_approvals.tasks", "tests.executor.worker_graph"]

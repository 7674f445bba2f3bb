"""A site's Celery app and its Temporal agent: what a worker process imports."""

from __future__ import annotations

import os

import django
from celery import Celery

django.setup()

from hitl_approvals import agent  # noqa: E402  the apps have to be ready
from hitl_approvals.engines import TemporalWorkflow  # noqa: E402
from tests.engines.forwarding import AGENT  # noqa: E402

app = Celery("celery_site", broker=os.environ["HITL_TEST_BROKER"])
app.conf.imports = ["hitl_approvals.tasks"]


@agent(AGENT, kind="temporal")
def workflow() -> TemporalWorkflow:
    return TemporalWorkflow(
        client=os.environ["HITL_TEST_TEMPORAL"],
        workflow="Scripted",
        task_queue="hitl-tests",
    )

"""A process of a site that delivers: `python -m tests.webhooks.process drain <channel>`.

Finds the test's database by the settings module, and the site's dict in the environment.
"""

from __future__ import annotations

import json
import os
import sys

import django
from django.conf import settings


def main(role: str, *arguments: str) -> None:
    settings.HITL_APPROVALS = json.loads(os.environ["HITL_APPROVALS"])
    django.setup()
    {"drain": _drain, "celery": _celery}[role](*arguments)


def _drain(channel: str) -> None:
    from hitl_approvals.services.deliveries import drain

    drain(channel)


def _celery(broker: str, queue: str) -> None:
    """Be a Celery worker until somebody ends this process."""
    from celery import Celery

    app = Celery("webhooks", broker=broker, set_as_current=True)
    app.conf.worker_hijack_root_logger = False
    app.autodiscover_tasks(["hitl_approvals"], force=True)
    app.Worker(
        pool="solo",
        queues=[queue],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    ).start()


if __name__ == "__main__":
    main(*sys.argv[1:])

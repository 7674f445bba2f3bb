"""What the processes of the killed site do: the web door, the workers. Judges nothing."""

from __future__ import annotations

import gc
import json
import os
import socket
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.urls import get_resolver

from hitl_approvals import engine, services
from tests.crash.site import agents
from tests.crash.site.broker import app

PEOPLE = ("asks", "reviews")
"""Who starts turns, and who decides what they want."""

AGENT = "elsewhere"
"""The agent client."""

NEEDED = (
    "celery.app.log",
    "celery.apps.worker",
    "celery.bin.worker",
    "celery.concurrency.asynpool",
    "celery.concurrency.prefork",
    "celery.concurrency.solo",
    "celery.events.state",
    "celery.fixups.django",
    "celery.worker.autoscale",
    "celery.worker.components",
    "celery.worker.consumer",
    "celery.worker.strategy",
    "django.db.backends.postgresql.base",
    "django.db.backends.sqlite3.base",
    "hitl_approvals.agents.function",
    "hitl_approvals.dispatchers.celery",
    "hitl_approvals.management.commands.hitl_worker",
    "hitl_approvals.tasks",
    "kombu.transport.redis",
    "rest_framework.authtoken.models",
)


def token_of(person: str) -> str:
    return f"hac_{person}".ljust(47, "0") if person == AGENT else person.ljust(40, "0")


def request(
    person: str, path: str, body: dict[str, Any], answer: Path, key: str = ""
) -> None:
    """Send one request to the site within this process, and keep its answer."""
    scheme = "Bearer" if person == AGENT else "Token"
    response = Client(raise_request_exception=False).post(
        f"/api/{path}",
        json.dumps(body),
        content_type="application/json",
        headers={
            "Authorization": f"{scheme} {token_of(person)}",
            # Pressed twice, it is still one decision.
            "Idempotency-Key": key
            or f"{answer.name if path == 'turns/' else ''} {answer.parent} {path}",
        },
    )
    draft = answer.with_suffix(".draft")
    draft.write_text(
        json.dumps({"status": response.status_code, "body": response.json()})
    )
    draft.rename(answer)


def run_here(turn_id: str) -> None:
    """Run an owed turn in this process."""
    engine.run_turn(turn_id)


def ask_here(case: str, answer: Path) -> None:
    """Ask for one call without an agent in this process, and keep its turn."""
    call = {"case": case, "amount": 10}
    asked = engine.request_call(agents.unsafe, call, key=case)
    answer.write_text(json.dumps({"status": 200, "body": {"id": str(asked.pk)}}))


def sweep_on() -> None:
    """Sweep without a pause until somebody ends this process."""
    while True:
        services.sweep()
        time.sleep(0.02)


def worker(transport: str) -> None:
    """Be a worker until somebody ends this process."""
    {"worker": _hitl_worker, "celery": _celery_worker}[transport]()


def _hitl_worker() -> None:
    call_command("hitl_worker", poll=0.05)


def _celery_worker() -> None:
    app.Worker(
        pool="solo",
        concurrency=1,
        queues=[settings.HITL_APPROVALS["CELERY_QUEUE"]],
        hostname=f"w{os.getpid()}@{socket.gethostname()}",
        loglevel="INFO",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    ).start()


def warm_up() -> None:
    """Import what the processes will need, so that none of them has to."""
    for module in NEEDED:
        import_module(module)
    get_resolver().url_patterns  # noqa: B018  imports every view
    gc.collect()
    # What is here now stays: a collection in a child would copy all of its pages.
    gc.freeze()

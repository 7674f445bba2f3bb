"""What the processes of the broken site do. Judges nothing, kills nothing."""

from __future__ import annotations

import os
import socket

from django.core.handlers.wsgi import WSGIHandler
from django.core.management import call_command
from django.core.servers.basehttp import run

from tests.crash import faults
from tests.crash.site.broker import app

HOST = "127.0.0.1"


def web(port: int) -> None:
    """Answer the API."""
    run(HOST, port, WSGIHandler(), threading=True)


def celery_worker(fault: str) -> None:
    """Work with a pool of two processes, as Celery's workers usually do."""
    faults.commit(fault)
    app.Worker(
        pool="prefork",
        concurrency=2,
        hostname=f"w{os.getpid()}@{socket.gethostname()}",
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    ).start()


def hitl_worker(fault: str) -> None:
    """Work without the broker."""
    faults.commit(fault)
    call_command("hitl_worker", poll=0.2)

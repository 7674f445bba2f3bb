"""A web server and a worker, each a process of its own on the run's database."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from tests.workspace import ROOT, run_file

SECONDS = 40


@contextmanager
def web(settings: str = "tests.settings.browser") -> Iterator[str]:
    """Serve the site; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{probe.getsockname()[1]}"
    with _process(settings, "runserver", "--noreload", "--insecure", place) as server:
        _await(f"http://{place}/admin/login/", server)
        yield f"http://{place}"


@contextmanager
def worker() -> Iterator[None]:
    """Run owed turns as they come."""
    with _process("tests.settings.browser", "hitl_worker", "--poll", "0.1"):
        yield


@contextmanager
def _process(settings: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    log = run_file(f"{command[0]}.log")
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": settings}
    with (
        log.open("ab") as told,
        subprocess.Popen(
            [sys.executable, "-m", "django", *command],
            cwd=ROOT,
            env=environment,
            stdout=told,
            stderr=told,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()


def _await(address: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + SECONDS
    while True:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except urllib.error.URLError:
            assert server.poll() is None, "the server ended at once"
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.1)

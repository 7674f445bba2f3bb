"""The site as a process that can be killed and started again where it was."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from example_project.demo.processes import Process
from example_project.demo.stage import HOST, free_port, wait_until
from tests.node.gate import SECONDS

COMMANDS = {
    "runserver": ("django", "runserver", "--noreload", f"{HOST}:{{port}}"),
    "uvicorn": ("uvicorn", "example_project.asgi:application", "--port={port}"),
}
"""The site under WSGI, with a thread for each who waits, and under ASGI, with none."""


class Site:
    """A web server on the run's own database."""

    def __init__(self, settings: str, folder: Path, server: str = "runserver") -> None:
        self._settings = settings
        self._folder = folder
        self._command = COMMANDS[server]
        self._port = free_port()
        self._server: Process | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port}"

    def start(self) -> None:
        """Start the server, unless it runs, and wait until it listens."""
        if self._server is not None and self._server.returncode is None:
            return
        words = [word.format(port=self._port) for word in self._command]
        self._server = Process(
            "web server",
            [sys.executable, "-m", *words],
            env={**os.environ, "DJANGO_SETTINGS_MODULE": self._settings},
            log=self._folder / "web.log",
        )
        wait_until(self._listens, self._server, seconds=SECONDS)

    def kill(self) -> None:
        """Let it die at once, as in a crash."""
        assert self._server is not None
        self._server.kill()
        self._server = None

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def _listens(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((HOST, self._port)) == 0

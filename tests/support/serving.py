"""Real servers of this run's site, and requests of many at once to them.

A child process inherits the run's name, and so meets the same database.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.workspace import ROOT, run_file

SECONDS = 30
"""What a server may take to come up."""

_THREADS = """
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from django.core.wsgi import get_wsgi_application

class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 128

class Handler(WSGIRequestHandler):
    def log_message(self, *args):
        pass

make_server(
    "127.0.0.1", int(sys.argv[1]), get_wsgi_application(), Server, Handler
).serve_forever()
"""


@dataclass(frozen=True)
class Site:
    """A server that answers."""

    port: int
    pid: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class Reply:
    """What came back, and when, on this machine's monotonic clock."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    at: float

    def json(self) -> Any:
        return json.loads(self.body)


@contextmanager
def on_an_event_loop(*, bare: bool = False, **environment: str) -> Iterator[Site]:
    """Serve the site with uvicorn, in one process.

    Args:
        bare: Without what lets requests wait outside of Django.
        environment: Beside that of this process.
    """
    application = f"tests.support.asgi:{'bare' if bare else 'application'}"
    with _server(
        "asgi",
        lambda port: [
            *("-m", "uvicorn", application),
            *("--host", "127.0.0.1", "--port", str(port)),
            *("--log-level", "warning", "--lifespan", "off", "--backlog", "2048"),
        ],
        environment,
    ) as site:
        yield site


@contextmanager
def in_threads(**environment: str) -> Iterator[Site]:
    """Serve the site by WSGI, with a thread for each request."""
    with _server("wsgi", lambda port: ["-c", _THREADS, str(port)], environment) as site:
        yield site


class _Asking(asyncio.Protocol):
    """Sends one request, and notes when the last of its answer came."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._parts: list[bytes] = []
        self._at = 0.0
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._at = time.monotonic()
        self._parts.append(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self.reply.done():
            return
        head, _, body = b"".join(self._parts).partition(b"\r\n\r\n")
        if not head:
            self.reply.set_exception(error or ConnectionError("no answer"))
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.split(":", 1) for line in lines)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        status = int(first.split(" ", 2)[1])
        self.reply.set_result(Reply(status, headers, body, self._at))


async def get(
    site: Site, path: str, headers: Mapping[str, str], *, sent: Callable[[], None]
) -> Reply:
    """Ask once, on a connection of its own.

    Args:
        site: Who is asked.
        path: With its query.
        headers: Beside the needed ones.
        sent: Called once the request is on its way.
    """
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{site.port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    request = "\r\n".join([*lines, "Connection: close", "", ""]).encode()
    transport, asking = await asyncio.get_running_loop().create_connection(
        lambda: _Asking(request), "127.0.0.1", site.port
    )
    sent()
    try:
        return await asking.reply
    finally:
        transport.close()


@contextmanager
def _server(
    name: str, command: Callable[[int], list[str]], environment: Mapping[str, str]
) -> Iterator[Site]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = run_file(f"{name}-{port}.log")
    with (
        log.open("ab") as told,
        subprocess.Popen(
            [sys.executable, *command(port)],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=told,
            stderr=told,
        ) as process,
    ):
        try:
            site = Site(port, process.pid)
            _await(site, process)
            yield site
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _await(site: Site, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + SECONDS
    while True:
        try:
            urllib.request.urlopen(f"{site.address}/api/queues/", timeout=5).close()
            return
        except urllib.error.HTTPError as error:
            # It answers; nobody has logged in.
            error.close()
            return
        except OSError:
            assert process.poll() is None, "the server ended at once"
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.05)

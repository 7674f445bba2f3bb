"""Stands before the site and the payment system, and can hold what goes through.

The agents are run as they are shipped, with nothing in them for tests: a request is held
before it reaches the server, or its answer before it reaches the agent, until the test
has killed whom it wants to. What was held goes nowhere, unless the test lets it go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import urlsplit

Step = Literal["raise", "wait", "consume", "act", "report"]
Moment = Literal["before", "after"]

STEPS: tuple[Step, ...] = ("raise", "wait", "consume", "act", "report")
"""The requests of an agent, in their order."""
MOMENTS: tuple[Moment, ...] = ("before", "after")
"""Before the request reaches the server; after the server has answered it."""
SECONDS = 40
"""Until a test that waits for an agent gives up."""


@dataclass
class Stop:
    """A place where one request is held."""

    step: Step
    moment: Moment
    _reached: threading.Event = field(default_factory=threading.Event)
    _released: threading.Event = field(default_factory=threading.Event)
    _dropped: bool = True

    def wait(self) -> None:
        """Wait until an agent has come here."""
        assert self._reached.wait(SECONDS), f"nobody came {self.moment} {self.step}"

    def release(self, *, dropped: bool) -> None:
        """Let what is held go on, or drop it."""
        if not self._released.is_set():
            self._dropped = dropped
            self._released.set()

    def hold(self) -> bool:
        """Hold a request; True if it is to be dropped then."""
        self._reached.set()
        self._released.wait(SECONDS)
        return self._dropped


class Gate(ThreadingHTTPServer):
    """Passes requests below `/api/` on to the site, and others to the payment system."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, site: str, payments: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = {"api": site, "refunds": payments}
        self.passed: list[tuple[Step, Moment]] = []
        """What went through, or was held there."""
        self.on_wait: Callable[[], None] = lambda: None
        """Called when an agent asks what was decided, before the site hears of it."""
        self._stops: list[Stop] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @contextmanager
    def holding(self, step: Step, moment: Moment) -> Iterator[Stop]:
        """Hold the next such request; what is held at the end of the block is dropped."""
        stop = Stop(step, moment)
        self._stops.append(stop)
        try:
            yield stop
        finally:
            if stop in self._stops:
                self._stops.remove(stop)
            stop.release(dropped=True)

    def held(self, step: Step, moment: Moment) -> bool:
        """Hold a request if a test wants it; True if it is to be dropped then."""
        self.passed.append((step, moment))
        for stop in list(self._stops):
            if (stop.step, stop.moment) == (step, moment):
                self._stops.remove(stop)
                return stop.hold()
        return False

    def count(self, step: Step) -> int:
        """Return how many such requests have come this far."""
        return self.passed.count((step, "before"))

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: agents are killed here."""


class _Handler(BaseHTTPRequestHandler):
    server: Gate

    def do_GET(self) -> None:
        self._pass_on()

    def do_POST(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        step = _step(self.command, self.path)
        if self.server.held(step, "before"):
            return
        if step == "wait":
            self.server.on_wait()
        answer = self._fetch(body)
        if answer is None or self.server.held(step, "after"):
            return
        status, headers, text = answer
        with suppress(ConnectionError):
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

    def _fetch(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes] | None:
        place = self.server.upstream[self.path.split("/")[1]]
        connection = HTTPConnection(urlsplit(place).netloc, timeout=SECONDS)
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in {"connection", "keep-alive", "host"}
        }
        try:
            connection.request(self.command, self.path, body or None, headers)
            answer = connection.getresponse()
            kept = [
                (name, value)
                for name, value in answer.getheaders()
                if name.lower() not in {"connection", "keep-alive", "transfer-encoding"}
            ]
            return answer.status, kept, answer.read()
        except (OSError, HTTPException):
            return None  # the server is gone, and the agent sees a closed connection
        finally:
            connection.close()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name
        """Say nothing: the tests say what was wrong."""


def _step(method: str, path: str) -> Step:
    if path.startswith("/refunds"):
        return "act"
    if method == "GET":
        return "wait"
    ending: dict[str, Step] = {"consume": "consume", "outcome": "report"}
    return ending.get(path.rstrip("/").rpartition("/")[2], "raise")

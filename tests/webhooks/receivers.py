"""Real HTTP receivers on loopback, as well-behaved or as bad as a test wants them."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

HERE = Path(__file__).resolve().parent
CA = HERE / "certificates/ca.pem"
CERTIFICATE = HERE / "certificates/hooks.pem"
"""For `hooks.example.test`, made once with openssl and good for a hundred years."""
SECONDS = 10


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes


class Handler(BaseHTTPRequestHandler):
    server: Receiver
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        names = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.take(Request(self.path, names, body))
        self.close_connection = True
        with suppress(OSError):
            answer(self)

    do_GET = do_POST  # noqa: N815  the base class names it so

    def log_message(self, *_: Any) -> None:
        """Say nothing: what came is in `received`."""


Answer: TypeAlias = Callable[[Handler], None]


def status(code: int, **headers: str) -> Answer:
    def answer(handler: Handler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def close_early(handler: Handler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)


def drip(handler: Handler) -> None:
    """Send a header that never ends, a byte at a time, each in time."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        handler.wfile.write(b"z")
        time.sleep(0.02)


def huge(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(10**12))
    handler.end_headers()
    while True:
        handler.wfile.write(b"z" * 2**20)


def garbage(handler: Handler) -> None:
    handler.wfile.write(b"\x00\xff not HTTP at all\r\n\r\n")


def wait_for(event: threading.Event, then: Answer) -> Answer:
    def answer(handler: Handler) -> None:
        event.wait(SECONDS)
        then(handler)

    return answer


class Receiver(ThreadingHTTPServer):
    """Keeps what it gets; answers 204 unless it was told what to answer next."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.received: list[Request] = []
        self.answers: list[Answer] = []
        self.always: Answer = status(204)
        self.came = threading.Condition()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks?site=1"

    def take(self, request: Request) -> Answer:
        with self.came:
            self.received.append(request)
            self.came.notify_all()
            return self.answers.pop(0) if self.answers else self.always

    def wait(self, count: int, seconds: float = SECONDS) -> None:
        """Wait until so many requests came."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.received) >= count, seconds)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever hangs up on a bad receiver is right."""


@contextmanager
def receiving(*, tls: bool = False) -> Iterator[Receiver]:
    receiver = Receiver()
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        receiver.socket = context.wrap_socket(
            receiver.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(
        target=receiver.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield receiver
    finally:
        receiver.shutdown()
        receiver.server_close()
        thread.join(SECONDS)


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])

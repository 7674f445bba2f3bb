"""The site behind a real socket, in a forked process that kills itself when it is told to.

A request says by a header at which point the process dies: at its n-th commit, or when
the view has returned and nothing was sent yet. What would have been sent is kept.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.urls import get_resolver

from hitl_approvals.types import JSONValue
from tests.crash.children import Child

DEATH = "X-Test-Death"
ANSWER = "answer"
"""Die with the whole answer made and none of it sent."""
COMMIT = "commit"
"""Die where the transaction would be committed; `commit-2` is the second one.

An INSERT that is a transaction of its own is one too: what it writes is not there yet.
"""
SECONDS = 30


class Died(Exception):
    """The connection ended without an answer."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    replayed: str | None
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class DyingSite:
    """One server after the other on one socket, which outlives them all."""

    def __init__(self, folder: Path) -> None:
        # What a server imports with its first request, none of them has to.
        get_resolver().url_patterns  # noqa: B018
        self._app = get_wsgi_application()
        self._folder = folder
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(None)
        self._child: Child | None = None
        self.deaths = 0

    @property
    def kept(self) -> bytes:
        """What the last server that died would have answered."""
        return (self._folder / "lost").read_bytes()

    def post(
        self, path: str, body: JSONValue, *, death: str = "", **headers: str
    ) -> Reply:
        """Send a request to the server that is up; one is started if none is.

        Raises:
            Died: The server was killed, as it was told, and answered nothing.
        """
        if self._child is None:
            self._child = Child("site", self._serve, self._folder / "log")
        if death:
            headers[DEATH] = death
        port = self._socket.getsockname()[1]
        wire = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        sent = {"Content-Type": "application/json", "Connection": "close", **headers}
        try:
            wire.request("POST", path, json.dumps(body), sent)
            found = wire.getresponse()
            replayed = found.headers.get("Idempotency-Replayed")
            return Reply(found.status, replayed, found.read())
        except (http.client.HTTPException, ConnectionError) as error:
            assert self._child.hit(signal.SIGKILL, seconds=SECONDS), self._log()
            self._child = None
            self.deaths += 1
            raise Died from error
        finally:
            wire.close()

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
        self._socket.close()

    def _serve(self) -> None:
        server = WSGIServer(("127.0.0.1", 0), _Quiet, bind_and_activate=False)
        server.socket.close()
        server.socket = self._socket
        server.server_address = self._socket.getsockname()
        server.server_name, server.server_port = server.server_address[:2]
        server.setup_environ()
        server.set_app(_mortal(self._app, self._folder))
        server.serve_forever()

    def _log(self) -> str:
        return (self._folder / "log").read_text()[-3000:]


class _Quiet(WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


def _mortal(site: Any, folder: Path) -> Callable[[Any, Any], Iterable[bytes]]:
    def application(environ: Any, start_response: Any) -> Iterable[bytes]:
        death = environ.get("HTTP_" + DEATH.upper().replace("-", "_"), "")
        if death.startswith(COMMIT):
            _die_at_commit(int(death.partition("-")[2] or 1))
        answer = site(environ, start_response)
        if death == ANSWER:
            (folder / "lost").write_bytes(b"".join(answer))
            _die()
        return answer  # type: ignore[no-any-return]

    return application


def _die_at_commit(number: int) -> None:
    left = iter(range(number - 1))

    def die_in_time() -> None:
        if next(left, None) is None:
            _die()

    def commit() -> None:
        die_in_time()
        original()

    def execute(send: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("INSERT") and not connection.in_atomic_block:
            die_in_time()
        return send(sql, params, many, context)

    original = connection.commit
    connection.commit = commit  # type: ignore[method-assign]
    connection.execute_wrappers.append(execute)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

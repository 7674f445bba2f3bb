"""A payment system for the remote agents: it refunds into a file. Knows no Django.

    python -m example_project.remote_agents.payments --port 8900

With `--no-keys` it is one of those that pay again whenever they are asked.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"


class Ledger:
    """The refunds that were made, one a line; they outlive the process."""

    def __init__(self, file: Path, *, honours_keys: bool = True) -> None:
        self._file = file
        self._honours_keys = honours_keys
        self._lock = threading.Lock()

    def refunds(self) -> list[dict[str, Any]]:
        """Return what was refunded, the oldest first."""
        if not self._file.exists():
            return []
        return [json.loads(line) for line in self._file.read_text().splitlines()]

    def refund(self, key: str, args: dict[str, Any]) -> dict[str, Any]:
        """Refund, or return the refund that this key has made before."""
        with self._lock:
            made = self.refunds()
            for before in made:
                if self._honours_keys and before["key"] == key:
                    return before
            refund = {"id": f"re_{len(made) + 1}", "key": key, "args": args}
            with self._file.open("a") as lines:
                lines.write(json.dumps(refund) + "\n")
                lines.flush()
                os.fsync(lines.fileno())
            return refund


class Payments(ThreadingHTTPServer):
    """Answers `POST /refunds` with 201 and the refund, or with 422."""

    daemon_threads = True

    def __init__(self, ledger: Ledger, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.ledger = ledger

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Payments

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != "/refunds":
            self._answer(404, {"error": "There is only /refunds."})
            return
        try:
            args = json.loads(sent)
            worth = float(args["amount"])
        except (KeyError, TypeError, ValueError):
            self._answer(400, {"error": "Send order_id and amount."})
            return
        if not worth > 0:
            self._answer(422, {"error": "There is nothing to refund."})
            return
        key = self.headers.get("Idempotency-Key") or ""
        self._answer(201, self.server.ledger.refund(key, args))

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name
        """Say nothing: the ledger says it."""


def main() -> None:
    """Refund until interrupted."""
    parser = argparse.ArgumentParser(description="A payment system to try agents with.")
    parser.add_argument("--port", type=int, default=8900)
    parser.add_argument("--ledger", type=Path, default=Path("ledger.jsonl"))
    parser.add_argument("--no-keys", action="store_true", help="pay again when asked")
    options = parser.parse_args()
    ledger = Ledger(options.ledger, honours_keys=not options.no_keys)
    with Payments(ledger, options.port) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()

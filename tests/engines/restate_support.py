"""A Restate server and a service, both processes of a test's own."""

from __future__ import annotations

import asyncio
import fcntl
import json
import shutil
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.engines.dbos_support import Log
from tests.engines.forwarding import AGENT, ServerHarness
from tests.engines.processes import free_port, listens, until
from tests.servers.bound import bound
from tests.workspace import ROOT

PACKAGE = "@restatedev/restate-server@1.7"
SERVICE = Path(__file__).with_name("restate_service.py")
READY = 60


def binary() -> Path:
    """Return the server, fetched by npm the first time that it is needed."""
    folder = Path(sys.prefix) / ".restate"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = list(folder.glob("node_modules/@restatedev/*/bin/restate-server"))
        if not found:
            npm = shutil.which("npm", path=f"{sys.prefix}/bin") or shutil.which("npm")
            assert npm, "npm is needed to fetch the Restate server"
            command = [npm, "install", "--no-audit", "--no-fund", PACKAGE]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
            found = list(folder.glob("node_modules/@restatedev/*/bin/restate-server"))
    return found[0]


class Server:
    """The server, on the loopback, with a folder that outlives its process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ports = [free_port() for _ in range(3)]
        self.ingress, self.admin, node = (f"127.0.0.1:{port}" for port in ports)
        self.config = folder / "restate.toml"
        self.config.write_text(
            f'base-dir = "{folder / "data"}"\n'
            'node-name = "tests"\n'
            'cluster-name = "tests"\n'
            "disable-telemetry = true\n"
            'listen-mode = "tcp"\n'
            f'bind-address = "{node}"\n'
            f'[ingress]\nbind-address = "{self.ingress}"\n'
            f'[admin]\nbind-address = "{self.admin}"\n'
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "restate.log").open("ab") as log:
            self.process = subprocess.Popen(
                bound([binary(), "--config-file", self.config]),
                cwd=self.folder,
                env={"DO_NOT_TRACK": "1"},
                stdout=log,
                stderr=log,
            )
        until(self.answers, seconds=READY)

    def answers(self) -> bool:
        with suppress(OSError):
            for place, path in (
                (self.admin, "health"),
                (self.ingress, "restate/health"),
            ):
                urllib.request.urlopen(f"http://{place}/{path}", timeout=2).close()
            return True
        return False

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def send(self, number: int) -> None:
        """Send a signal that does not end it."""
        assert self.process is not None
        self.process.send_signal(number)

    def register(self, port: int) -> None:
        """Make a service known that listens on a port of the loopback."""
        deployment = {"uri": f"http://127.0.0.1:{port}"}
        self.ask("POST", self.admin, "/deployments", deployment)

    def ask(self, method: str, place: str, path: str, body: Any = None) -> Any:
        """Send one request and return the JSON of its answer."""
        request = urllib.request.Request(
            f"http://{place}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json", "accept": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read() or b"null")


class RestateHarness(ServerHarness):
    """The server and the service."""

    name = "Restate"

    def __init__(self, folder: Path) -> None:
        self.server = Server(folder)
        self.port = free_port()
        self.model_calls: Any = Log(folder / "model.log")
        self.log = folder / "service.log"
        self.server.start()
        self.start_worker()
        self.server.register(self.port)

    def close(self) -> None:
        self.stop_worker()
        self.server.stop()

    def stop_server(self) -> None:
        self.server.stop()

    def start_server(self) -> None:
        self.server.start()

    def freeze_server(self) -> None:
        self.server.send(signal.SIGSTOP)

    def thaw_server(self) -> None:
        self.server.send(signal.SIGCONT)

    def stop_worker(self) -> None:
        self.process.kill()
        self.process.wait()

    def start_worker(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                bound([sys.executable, SERVICE, str(self.port), self.model_calls.path]),
                cwd=ROOT,
                env={"PYTHONPATH": str(ROOT)},
                stdout=log,
                stderr=log,
            )

        assert until(lambda: listens(self.port), seconds=READY), self.log.read_text()

    def deliver(self, workflow: str, answer: Any) -> None:
        from hitl_approvals.agents.base import load
        from hitl_approvals.registry import registry

        engine = load(registry.agents[AGENT]).engine  # type: ignore[attr-defined]

        async def send() -> None:
            async with engine.link() as link:
                await link.deliver(workflow, answer)

        asyncio.run(send())

    def deliveries(self, workflow: str) -> int:
        where = f"service_key = '{workflow}' AND key LIKE 'hitl-round-%'"
        rows = self.query(f"SELECT completed FROM sys_promise WHERE {where}")
        return len([row for row in rows if row["completed"]])

    def cancel(self, workflow: str) -> None:
        where = f"target_service_key = '{workflow}' AND target_handler_name = 'run'"
        [row] = self.query(f"SELECT id FROM sys_invocation WHERE {where}")
        self.server.ask("PATCH", self.server.admin, f"/invocations/{row['id']}/cancel")

    def is_over(self, workflow: str) -> bool:
        where = f"target_service_key = '{workflow}' AND target_handler_name = 'run'"
        query = f"SELECT status FROM sys_invocation WHERE {where}"
        return until(
            lambda: all(row["status"] == "completed" for row in self.query(query))
        )

    def query(self, sql: str) -> list[Any]:
        found = self.server.ask("POST", self.server.admin, "/query", {"query": sql})
        rows: list[Any] = found["rows"]
        return rows

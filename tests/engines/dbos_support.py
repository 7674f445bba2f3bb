"""A DBOS application in a process of its own, on a database that can be cut off."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.engines.forwarding import AGENT, ServerHarness
from tests.engines.processes import until
from tests.engines.proxy import Proxy
from tests.servers.bound import bound
from tests.workspace import ROOT, run_name

APP = Path(__file__).with_name("dbos_app.py")


def postgresql_url() -> str:
    """Return the server that the suite uses."""
    return (
        os.environ.get("HITL_TEST_POSTGRES_URL")
        or "postgresql://postgres@127.0.0.1:5432/postgres"
    )


class Log(Sequence[Any]):
    """What the application's recorded step was run with, in a file of lines."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __len__(self) -> int:
        return len(self._lines())

    def __getitem__(self, index: Any) -> Any:
        return self._lines()[index]

    def clear(self) -> None:
        self.path.write_text("")

    def _lines(self) -> list[Any]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines()]


class Database:
    """A database of a test's own, on the suite's PostgreSQL, reached through a proxy."""

    def __init__(self, purpose: str) -> None:
        self.server = postgresql_url()
        # The suite runs on two databases at the same time, under one name.
        self.name = f"test_hitl_{run_name()}_{purpose}_{os.getpid()}"
        place = urlsplit(self.server)
        self.proxy = Proxy(place.hostname or "127.0.0.1", place.port or 5432)
        self.proxy.open()
        who = place.netloc.rpartition("@")[0]
        self.url = f"postgresql://{who}@127.0.0.1:{self.proxy.port}/{self.name}"

    def __enter__(self) -> Database:
        self._sql(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')
        self._sql(f'CREATE DATABASE "{self.name}" TEMPLATE template0')
        return self

    def __exit__(self, *error: object) -> None:
        self.proxy.cut()
        self._sql(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')

    def _sql(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute(statement)


class DBOSHarness(ServerHarness):
    """The database, and the application in a process of its own."""

    name = "DBOS"

    def __init__(self, folder: Path, database: Database) -> None:
        self.database = database
        self.url = database.url
        self.model_calls: Any = Log(folder / "model.log")
        self.log = folder / "dbos.log"
        self.start_worker()

    def close(self) -> None:
        self.stop_worker()

    def stop_server(self) -> None:
        self.database.proxy.cut()

    def start_server(self) -> None:
        self.database.proxy.open()

    def freeze_server(self) -> None:
        self.database.proxy.freeze()

    def thaw_server(self) -> None:
        self.database.proxy.thaw()

    def stop_worker(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def start_worker(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                bound([sys.executable, APP, self.url, self.model_calls.path]),
                cwd=ROOT,
                env={"PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert ready == b"ready\n", self.log.read_text()

    def deliver(self, workflow: str, answer: Any) -> None:
        from hitl_approvals.agents.base import load
        from hitl_approvals.registry import registry

        engine = load(registry.agents[AGENT]).engine  # type: ignore[attr-defined]

        async def send() -> None:
            async with engine.link() as link:
                await link.deliver(workflow, answer)

        asyncio.run(send())

    def deliveries(self, workflow: str) -> int:
        steps = self._client(lambda client: client.list_workflow_steps(workflow))
        taken = [one for one in steps if one["function_name"] == "DBOS.recv"]
        return len([one for one in taken if one["output"] is not None])

    def cancel(self, workflow: str) -> None:
        self._client(lambda client: client.cancel_workflow(workflow))

    def is_over(self, workflow: str) -> bool:
        def status() -> str:
            found = self._client(lambda c: c.retrieve_workflow(workflow).get_status())
            return str(found.status)

        return until(lambda: status() not in {"ENQUEUED", "PENDING"})

    def _client(self, work: Any) -> Any:
        from dbos import DBOSClient

        client = DBOSClient(system_database_url=self.url)
        try:
            return work(client)
        finally:
            client.destroy()

"""The example site with a worker, in processes and a database of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings

from example_project.demo.processes import Process
from example_project.demo.stage import Stage, free_port, wait_until
from tests.workspace import ROOT, run_database

SECONDS = 60
WAITING = 10
"""Interrupts that there are before anybody asks."""


@dataclass(frozen=True)
class Site:
    """A running site, and the `Authorization` of everybody."""

    address: str
    tokens: dict[str, str]
    folder: Path

    def get(self, path: str, actor: str | None = None) -> Any:
        headers = {} if actor is None else {"Authorization": self.tokens[actor]}
        request = urllib.request.Request(f"{self.address}{path}", headers=headers)
        return urllib.request.urlopen(request, timeout=SECONDS)

    def is_busy(self) -> bool:
        """Tell whether the agents have asked for something to be approved."""
        with self.get("/api/interrupts/?open=true&tool=issue_refund", "reviewer") as it:
            return len(json.load(it)["results"]) >= WAITING

    def document(self) -> dict[str, Any]:
        with self.get("/api/schema/", "backend") as answer:
            found: dict[str, Any] = json.load(answer)
            return found


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with ExitStack() as stack:
        environment = {"DJANGO_SETTINGS_MODULE": "tests.schema.settings"}
        environment |= stack.enter_context(database())
        stage = Stage(folder, free_port(), **environment)
        told = subprocess.run(
            [sys.executable, "-m", "tests.schema.people"],
            cwd=ROOT,
            env=stage.environment,
            stdout=subprocess.PIPE,
            check=True,
        )
        web = stack.enter_context(stage.start_web())
        wait_until(stage.is_up, web, seconds=SECONDS)
        worker = [sys.executable, "-m", "django", "hitl_worker", "--poll", "0.2"]
        log = folder / "worker.log"
        process = Process("worker", worker, env=stage.environment, log=log)
        stack.enter_context(process)
        site = Site(stage.address, json.loads(told.stdout), folder)
        wait_until(site.is_busy, process, seconds=SECONDS)
        yield site


@contextmanager
def database() -> Iterator[dict[str, str]]:
    """A database beside the run's own, on the server that the run is about."""
    run = settings.DATABASES["default"]
    if "postgresql" not in run["ENGINE"]:
        yield {"DATABASE_URL": ""}  # a file in the site's folder
        return
    import psycopg

    name = f"{run_database()}_site"
    parts = {"host": run["HOST"], "port": run["PORT"], "user": run["USER"]}
    known = {key: value for key, value in parts.items() if value}
    if run["PASSWORD"]:
        known["password"] = run["PASSWORD"]

    def command(sql: str) -> None:
        with psycopg.connect(dbname="postgres", autocommit=True, **known) as server:
            server.execute(sql)

    command(f'CREATE DATABASE "{name}" TEMPLATE template0')
    try:
        who = quote(run["USER"], safe="")
        if run["PASSWORD"]:
            who += f":{quote(run['PASSWORD'], safe='')}"
        place = f"{quote(run['HOST'], safe='')}:{run['PORT'] or 5432}"
        yield {"DATABASE_URL": f"postgresql://{who}@{place}/{name}"}
    finally:
        command(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
